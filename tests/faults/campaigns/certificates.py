"""T10: the files of the serving certificate change, well and badly, while clients call without pause."""

import asyncio
import os
import shutil
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from faults.case import Case, References
from faults.stage import Stage, until
from faults.webhook import ERRORS, Calls, Webhook, caller, files_of, pair, trusting, webhook
from memcached_operator.certificates.pki import KeyPair

CERTIFICATE, KEY = "tls.crt", "tls.key"
LOOKS = 3.0
"""Seconds within which the process must have looked at its files again: it does so every second."""
TAKEN = 20.0
"""Seconds for that on a very busy machine."""
CALLS = 20
"""At the least, by each of the two clients, in each case."""
Content = Mapping[str, bytes]


@dataclass(frozen=True)
class Change:
    """What the files become, given the pair in use and a new one; a file that is not named is missing.

    `served`: the new pair is good, and served. Else the one in use is kept, and the metric tells of it.
    """

    name: str
    content: Callable[[KeyPair, KeyPair], Content]
    served: bool = False
    new: Callable[[], KeyPair] = pair


def _both(certificate: bytes, key: bytes) -> Content:
    return {CERTIFICATE: certificate, KEY: key}


def _encrypted(key: bytes) -> bytes:
    loaded = load_pem_private_key(key, None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


def _der(certificate: bytes) -> bytes:
    return x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER)


def _windows(content: Content) -> Content:
    return {name: held.replace(b"\n", b"\r\n") for name, held in content.items()}


def _weak() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 1024)  # noqa: S505 - that is the point


def _of(make: Callable[[], ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey]) -> Callable[[], KeyPair]:
    """A pair with another kind of key, signed by itself."""

    def made() -> KeyPair:
        usual, key = x509.load_pem_x509_certificate(pair().certificate), make()
        times = (usual.not_valid_before_utc, usual.not_valid_after_utc)
        builder = x509.CertificateBuilder(
            usual.subject, usual.subject, key.public_key(), x509.random_serial_number(), *times
        )
        names = usual.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        signed = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
        pem = signed.public_bytes(Encoding.PEM)
        return KeyPair(pem, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), pem)

    return made


TEXT = b"Issued for a test.\n"

CHANGES = (
    Change("new-pair", lambda _, new: files_of(new), served=True),
    Change("leaf-first", lambda _, new: _both(new.certificate + new.ca, new.key), served=True),
    Change("text-around", lambda _, new: _both(TEXT + new.certificate + TEXT, TEXT + new.key), served=True),
    Change("windows-lines", lambda _, new: _windows(files_of(new)), served=True),
    Change("key-after-certificate", lambda _, new: _both(new.certificate + new.key, new.key), served=True),
    Change("rsa", lambda _, new: files_of(new), True, _of(lambda: rsa.generate_private_key(65537, 2048))),
    Change("p-384", lambda _, new: files_of(new), True, _of(lambda: ec.generate_private_key(ec.SECP384R1()))),
    Change("ca-first", lambda _, new: _both(new.ca + new.certificate, new.key)),
    Change("mismatched-key", lambda _, new: _both(new.certificate, pair().key)),
    Change("only-the-key-is-new", lambda old, new: _both(old.certificate, new.key)),
    Change("only-the-certificate-is-new", lambda old, new: _both(new.certificate, old.key)),
    Change("exchanged", lambda _, new: _both(new.key, new.certificate)),
    Change("truncated-certificate", lambda _, new: _both(new.certificate[:300], new.key)),
    Change("truncated-key", lambda _, new: _both(new.certificate, new.key[:100])),
    Change("truncated-by-a-byte", lambda _, new: _both(new.certificate[:-2], new.key[:-2])),
    Change("emptied-certificate", lambda _, new: _both(b"", new.key)),
    Change("emptied-key", lambda _, new: _both(new.certificate, b"")),
    Change("emptied", lambda _, __: _both(b"", b"")),
    Change("certificate-missing", lambda _, new: {KEY: new.key}),
    Change("key-missing", lambda _, new: {CERTIFICATE: new.certificate}),
    Change("both-missing", lambda _, __: {}),
    Change("garbage", lambda _, __: _both(os.urandom(2000), os.urandom(300))),
    Change("zeros", lambda _, __: _both(bytes(2000), bytes(300))),
    Change("garbage-within", lambda _, new: _both(new.certificate[:200] + b"!" * 9 + new.certificate[209:], new.key)),
    Change("der", lambda _, new: _both(_der(new.certificate), new.key)),
    Change("locked-key", lambda _, new: _both(new.certificate, _encrypted(new.key))),
    Change("weak-key", lambda _, new: files_of(new), False, _of(_weak)),
)


def swapped(here: Webhook, content: Content) -> None:
    """As a kubelet does: the link to the version is replaced."""
    here.files.swap(content)


def written(here: Webhook, content: Content) -> None:
    """Into plain files, in place; what is not named is removed."""
    for name in (CERTIFICATE, KEY):
        file = here.files.directory / name
        if name in content:
            file.write_bytes(content[name])
        else:
            file.unlink()


def renamed(here: Webhook, content: Content) -> None:
    """Each file by a rename over the former one."""
    for name in (CERTIFICATE, KEY):
        file = here.files.directory / name
        if name in content:
            file.with_suffix(".new").write_bytes(content[name])
            file.with_suffix(".new").rename(file)
        else:
            file.rename(file.with_suffix(".away"))


WAYS: dict[str, Callable[[Webhook, Content], None]] = {"swapped": swapped, "written": written, "renamed": renamed}


@dataclass
class Scene:
    """A process whose files change; pairs: the first one, the one that comes in trouble, and the last, good one."""

    stage: Stage
    webhook: Webhook
    first: KeyPair
    second: KeyPair
    last: KeyPair

    async def shows(self, held: KeyPair) -> None:
        """Wait until new connections are shown a pair."""
        wanted = serial(held)

        async def look() -> bool:
            return await asyncio.to_thread(shown, self.webhook.port) == wanted

        await until(look, TAKEN, "the pair is served")

    async def keeps(self, held: KeyPair) -> None:
        """A pair is shown for as long as it takes to look at the files, several times."""
        end = time.monotonic() + LOOKS
        while time.monotonic() < end:
            found = await asyncio.to_thread(shown, self.webhook.port)
            self.stage.holds(found == serial(held), "another pair is served")
            await asyncio.sleep(LOOKS / 10)

    async def tells(self, before: float) -> None:
        """Wait until the metric counts one more error."""

        async def look() -> bool:
            return (await self.webhook.metrics())[ERRORS] > before

        await until(look, TAKEN, "the metric tells of the error")


def shown(port: int) -> int:
    """The serial number of what a new connection is shown."""
    pem = ssl.get_server_certificate(("127.0.0.1", port), timeout=10)
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


def serial(held: KeyPair) -> int:
    """Of a pair's certificate."""
    return x509.load_pem_x509_certificate(held.certificate).serial_number


Play = Callable[[Scene], Awaitable[None]]


async def played(stage: Stage, _: References, play: Play, new: Callable[[], KeyPair] = pair, *, plain: bool) -> None:
    """Files change under two clients, one with a connection it keeps; no call fails. Then a good pair is taken."""
    second, last = new(), pair()
    first = alike(second)
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(webhook(stage, first))
        if plain:
            _unlink(here, files_of(first))
        trust = trusting(first.ca, second.ca, last.ca)
        clients = [await stack.enter_async_context(caller(trust, fresh=fresh)) for fresh in (False, True)]
        calls = [Calls() for _ in clients]
        tasks = [asyncio.create_task(each.go_on(client, here.url)) for each, client in zip(calls, clients, strict=True)]
        try:
            scene = Scene(stage, here, first, second, last)
            await play(scene)
            (written if plain else swapped)(here, files_of(last))
            await scene.shows(last)
            await until(partial(_enough, calls), TAKEN, f"{CALLS} calls were made")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        failed = [fault for each in calls for fault in each.failed]
        stage.holds(not failed, f"{len(failed)} calls failed: {failed[:3]}")
        stage.holds(len(here.process.began) == 1, "the process was started again")
        stage.holds(not here.failures(), f"admission itself: {here.failures()}")


def alike(other: KeyPair) -> KeyPair:
    """A pair whose files are as long as those of another, where that is of the usual kind."""
    wanted = [len(content) for content in files_of(other).values()]
    tries = (pair() for _ in range(50))
    return next((made for made in tries if [len(each) for each in files_of(made).values()] == wanted), pair())


async def _enough(calls: list[Calls]) -> bool:
    return min(each.count for each in calls) >= CALLS


def _unlink(here: Webhook, content: Content) -> None:
    """Plain files in the place of links."""
    for name, held in content.items():
        file = here.files.directory / name
        file.with_suffix(".new").write_bytes(held)
        file.with_suffix(".new").rename(file)
    with suppress(FileNotFoundError):
        (here.files.directory / "..data").unlink()


async def changed(scene: Scene, change: Change, way: Callable[[Webhook, Content], None]) -> None:
    """One change of the table."""
    errors = (await scene.webhook.metrics())[ERRORS]
    way(scene.webhook, change.content(scene.first, scene.second))
    if change.served:
        await scene.shows(scene.second)
        return
    await scene.tells(errors)
    await scene.keeps(scene.first)


async def one_by_one(scene: Scene) -> None:
    """The certificate comes first, the key seconds later: in between, they do not match."""
    errors = (await scene.webhook.metrics())[ERRORS]
    written(scene.webhook, {CERTIFICATE: scene.second.certificate, KEY: scene.first.key})
    await scene.tells(errors)
    await scene.keeps(scene.first)
    written(scene.webhook, files_of(scene.second))
    await scene.shows(scene.second)


async def unreadable(scene: Scene, target: str) -> None:
    """The key is there, and cannot be read; when it can, nothing about the file itself is new."""
    errors = (await scene.webhook.metrics())[ERRORS]
    file = scene.webhook.files.directory / KEY
    file.unlink()
    if target:
        file.symlink_to(target)
    else:
        file.mkdir()
    await scene.tells(errors)
    await scene.keeps(scene.first)
    shutil.rmtree(file) if file.is_dir() else file.unlink()


async def many(scene: Scene) -> None:
    """Twenty versions within a second; the last counts."""
    for number in range(20):
        swapped(scene.webhook, files_of(scene.first if number % 2 else scene.second))
        await asyncio.sleep(0.05)
    swapped(scene.webhook, files_of(scene.second))
    await scene.shows(scene.second)


async def touched(scene: Scene) -> None:
    """The same content again and again: nothing is wrong with that."""
    before = await scene.webhook.metrics()
    for _ in range(5):
        written(scene.webhook, files_of(scene.first))
        await asyncio.sleep(0.3)
    await scene.keeps(scene.first)
    scene.stage.holds((await scene.webhook.metrics())[ERRORS] == before[ERRORS], "the metric tells of an error")


async def backdated(scene: Scene) -> None:
    """A new pair of the same length is written in place, and the files' times are set back, as copies often are."""
    directory = scene.webhook.files.directory
    times = {name: (directory / name).stat() for name in (CERTIFICATE, KEY)}
    written(scene.webhook, files_of(scene.second))
    for name, stat in times.items():
        os.utime(directory / name, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    await scene.shows(scene.second)


async def gone(scene: Scene) -> None:
    """The whole directory is away for a while."""
    errors = (await scene.webhook.metrics())[ERRORS]
    directory = scene.webhook.files.directory
    away = directory.with_name(f"{directory.name}-away")
    directory.rename(away)
    await scene.tells(errors)
    await scene.keeps(scene.first)
    away.rename(directory)


OTHERS: dict[str, tuple[Play, bool]] = {
    "written/one-by-one": (one_by_one, True),
    "written/touched": (touched, True),
    "written/backdated": (backdated, True),
    "written/a-directory": (partial(unreadable, target=""), True),
    "written/read-error": (partial(unreadable, target="/proc/self/mem"), True),
    "written/dangling-link": (partial(unreadable, target="nowhere"), True),
    "written/link-to-itself": (partial(unreadable, target=KEY), True),
    "swapped/twenty-versions": (many, False),
    "swapped/directory-gone": (gone, False),
}
"""Plays, and whether the files are plain ones."""
GATE = ("swapped/new-pair", "swapped/mismatched-key", "written/ca-first", "written/key-missing", "written/locked-key")


def cases() -> list[Case]:
    """Every change in every way, and what is no change of content."""
    found: list[Case] = []
    for way, do in WAYS.items():
        for change in CHANGES:
            play = partial(played, play=partial(changed, change=change, way=do), new=change.new, plain=way != "swapped")
            found.append(Case(f"T10/{way}/{change.name}", play, limit=90))
    found += [
        Case(f"T10/{name}", partial(played, play=play, plain=plain), limit=90) for name, (play, plain) in OTHERS.items()
    ]
    return [Case(each.name, each.play, each.name.removeprefix("T10/") in GATE, limit=each.limit) for each in found]
