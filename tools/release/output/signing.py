"""Pushing the images of a release, signing everything with cosign, and verifying it: command lines and their order.

With a key, signatures are made and verified with it alone. Without one, cosign asks the platform for an identity and
records the signature in the public transparency log ("keyless").
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = f"{SUMS}.sigstore.json"


@dataclass(frozen=True)
class Signer:
    """Who signs, and whose signature is accepted.

    `key`: a file with the private key, for signing, or with the public key, for verifying; empty: keyless.
    `identity`, `issuer`: of keyless signatures: a regular expression for the workflow's URL, and the URL of the service
    that vouches for it. `plain_http`: the registry has no TLS, as a local one.
    """

    key: str = ""
    identity: str = ""
    issuer: str = ""
    plain_http: bool = False

    @property
    def _registry(self) -> list[str]:
        return ["--allow-http-registry"] if self.plain_http else []

    def _signing(self) -> list[str]:
        return ["--key", self.key, "--use-signing-config=false", "--tlog-upload=false"] if self.key else []

    def _verifying(self) -> list[str]:
        if self.key:
            return ["--key", self.key, "--insecure-ignore-tlog"]
        return ["--certificate-identity-regexp", self.identity, "--certificate-oidc-issuer", self.issuer]

    def push(self, layout: Path, image: str) -> list[str]:
        """Push an image from a layout."""
        return ["crane", "push", *(["--insecure"] if self.plain_http else []), str(layout), image]

    def sign(self, image: str) -> list[str]:
        """Sign an image, and the image of each architecture below it."""
        return ["cosign", "sign", "--yes", "--recursive", *self._signing(), *self._registry, image]

    def attest(self, image: str, kind: str, predicate: Path) -> list[str]:
        """Attach a signed statement to an image."""
        words = ["cosign", "attest", "--yes", f"--type={kind}", f"--predicate={predicate}"]
        return [*words, *self._signing(), *self._registry, image]

    def sign_file(self, file: Path, bundle: Path) -> list[str]:
        """Sign a file; the signature is written beside it."""
        return ["cosign", "sign-blob", "--yes", f"--bundle={bundle}", *self._signing(), str(file)]

    def digest(self, image: str) -> list[str]:
        """Print the digest of an image in the registry."""
        return ["crane", "digest", *(["--insecure"] if self.plain_http else []), image]

    def verify(self, image: str) -> list[str]:
        """Verify the signature of an image."""
        return ["cosign", "verify", *self._verifying(), *self._registry, image]

    def verify_attestation(self, image: str, kind: str) -> list[str]:
        """Verify a statement attached to an image."""
        return ["cosign", "verify-attestation", f"--type={kind}", *self._verifying(), *self._registry, image]

    def verify_file(self, file: Path, bundle: Path) -> list[str]:
        """Verify the signature of a file."""
        return ["cosign", "verify-blob", f"--bundle={bundle}", *self._verifying(), str(file)]


PROVENANCE: Final = "slsaprovenance1"
BILL: Final = "cyclonedx"


@dataclass(frozen=True)
class Published:
    """One image to publish: its directory, its name with tag, its digest, and those of its architectures.

    `bills`: the file of the bill of materials of each digest; images that contain only data have none.
    """

    layout: Path
    name: str
    digest: str
    bills: dict[str, Path]

    @property
    def repository(self) -> str:
        """The name without tag."""
        return self.name.rpartition(":")[0]

    @property
    def reference(self) -> str:
        """The image by digest."""
        return f"{self.repository}@{self.digest}"


def publish(
    images: list[Published], predicate: Path, folder: Path, signer: Signer, unsigned: Sequence[Published] = ()
) -> Iterator[list[str]]:
    """The commands that push the images, sign them and the sums, and attach provenance and bills.

    `unsigned`: what is only pushed, because its tag moves.
    """
    for image in [*images, *unsigned]:
        yield signer.push(image.layout, image.name)
    for image in images:
        yield signer.sign(image.reference)
        yield signer.attest(image.reference, PROVENANCE, predicate)
        for digest, file in image.bills.items():
            yield signer.attest(f"{image.repository}@{digest}", BILL, file)
    yield signer.sign_file(folder / SUMS, folder / SIGNATURE)


def verify(images: list[Published], folder: Path, signer: Signer) -> Iterator[list[str]]:
    """The commands that verify a published release, by the tags that users write.

    The first one verifies the list of the digests, which all others depend on.
    """
    yield signer.verify_file(folder / SUMS, folder / SIGNATURE)
    for image in images:
        yield signer.verify(image.name)
        yield signer.verify_attestation(image.name, PROVENANCE)
        for digest in image.bills:
            yield signer.verify_attestation(f"{image.repository}@{digest}", BILL)
