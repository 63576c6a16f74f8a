"""The options of memcached 1.6.18 to 1.6.45 that `spec.cache.extraArgs` denies, and what to use instead."""

from collections.abc import Iterable, Iterator
from typing import Final


def _with_remedy(names: Iterable[str], remedy: str) -> Iterator[tuple[str, str]]:
    return ((name, remedy) for name in names)


def _keys(prefix: str, names: str) -> list[str]:
    return [f"-o {prefix}{name}" for name in names.split()]


_ADDRESSES: Final = (
    "use spec.containerPort; memcached always listens on this TCP port of the pod, and on no other address"
)
_NO_SOCKET: Final = "remove the item, because the pods of a cache serve no UNIX socket"
_EXITS: Final = "remove the item, because it makes memcached print a text and exit"
_TLS: Final = "use spec.tls"
_TLS_DEFAULT: Final = "remove the item, because spec.tls uses the default of memcached and OpenSSL"
_SASL: Final = "use spec.auth, because SASL needs the binary protocol, which memcached has deprecated"
_STORAGE: Final = "use spec.cache.extstore"
_PROXY: Final = "remove the item, because the proxy needs configuration files and does not exist in memcached 1.6.18"
_DEFAULT: Final = "remove the item, because it is the default"
_NO_EFFECT: Final = "remove the item, because it has no effect"
_LOG_BUFFERS: Final = "remove the item, because the memory of log buffers is not part of the memory limit"
_CHUNKS: Final = "use spec.cache.maxItemSize, whose values require the default of this option"
_PRIVILEGES: Final = "remove the item, because the container's securityContext already drops all privileges"

DENIED: Final[dict[str, str]] = dict(
    [
        ("--port", "use spec.containerPort"),
        ("--listen", _ADDRESSES),
        ("--udp-port", "remove the item, because memcached serves TCP only, on spec.containerPort"),
        *_with_remedy(("--unix-socket", "--unix-mask"), _NO_SOCKET),
        ("--memory-limit", "use spec.cache.memory"),
        ("--max-item-size", "use spec.cache.maxItemSize"),
        ("--conn-limit", "use spec.cache.maxConnections"),
        ("--threads", "use spec.cache.threads"),
        ("--disable-evictions", "use spec.cache.evictions: false"),
        ("--verbose", "use spec.cache.verbosity"),
        ("--extended", "write the item as -o key=value"),
        ("--enable-shutdown", "remove the item, because it lets any client stop the server"),
        *_with_remedy(("--help", "--license", "--version"), _EXITS),
        ("--daemon", "remove the item, because it makes the container exit at once"),
        ("--user", "remove the item, because only root can change the user, and the container does not run as root"),
        ("--pidfile", "remove the item, because the file system of the container is read-only"),
        ("--enable-coredumps", "remove the item, because the file system of the container is read-only"),
        ("--lock-memory", "remove the item, because locking memory needs a privilege that the container does not have"),
        (
            "--enable-largepages",
            "remove the item, because it makes memcached exit if its memory is below 39Mi",
        ),
        ("--napi-ids", "remove the item, because it needs settings of the node's network interface"),
        ("--enable-ssl", _TLS),
        ("--enable-sasl", _SASL),
        ("--auth-file", "use spec.auth"),
        ("--memory-file", "remove the item, because a memory file needs a volume"),
        ("-D", "remove the item, because statistics per prefix need memory without a limit"),
        (
            "-o no_maxconns_fast",
            "use spec.cache.maxConnections; without maxconns_fast, additional clients wait forever",
        ),
        ("-o read_buf_mem_limit", "use spec.cache.maxConnections; at this limit memcached closes connections"),
        ("-o no_hashexpand", "use -o hashpower for a larger table at the start; a full table makes every request slow"),
        ("-o tail_repair_time", "remove the item, because it can free items that are in use"),
        *_with_remedy(("-o watcher_logbuf_size", "-o worker_logbuf_size"), _LOG_BUFFERS),
        ("-o slab_sizes", "use --slab-growth-factor and --slab-min-size"),
        ("-o slab_chunk_max", "use spec.cache.maxItemSize; the unit of slab_chunk_max depends on the release"),
        *_with_remedy(_keys("no_", "chunked_items modern"), _CHUNKS),
        *_with_remedy(_keys("no_slab_", "reassign automove"), "use -o slab_automove=0"),
        ("-o no_lru_maintainer", "use -o slab_automove=0 or -o no_lru_crawler; other options need the maintainer"),
        *_with_remedy(_keys("", "lru_crawler lru_maintainer maxconns_fast slab_reassign"), _DEFAULT),
        *_with_remedy(_keys("", "inline_ascii_resp no_inline_ascii_resp resp_obj_mem_limit"), _NO_EFFECT),
        *_with_remedy(_keys("", "drop_privileges no_drop_privileges"), _PRIVILEGES),
        (
            "-o sock_cookie_id",
            "remove the item, because marking sockets needs a privilege that the container does not have",
        ),
        *_with_remedy(_keys("ssl_", "chain_cert key"), _TLS),
        ("-o ssl_verify_mode", "use spec.tls.clientAuth"),
        ("-o ssl_ca_cert", "use spec.tls.clientCASecretName"),
        ("-o ssl_min_version", "use spec.tls.minVersion"),
        *_with_remedy(_keys("ssl_", "keyformat ciphers wbuf_size session_cache kernel_tls"), _TLS_DEFAULT),
        *_with_remedy(_keys("proxy_", "config arg uring memprofile"), _PROXY),
        *_with_remedy(
            _keys(
                "ext_",
                "path page_size wbuf_size threads io_depth item_size item_age low_ttl recache_rate compact_under "
                "drop_under max_sleep max_frag drop_unread",
            ),
            _STORAGE,
        ),
        ("-o slab_automove_freeratio", _STORAGE),
    ]
)
"""The options by name, as in an item of the list, each with what to use instead."""

SHORT_NAMES: Final = {
    "-A": "--enable-shutdown",
    "-a": "--unix-mask",
    "-B": "--protocol",
    "-b": "--listen-backlog",
    "-C": "--disable-cas",
    "-c": "--conn-limit",
    "-d": "--daemon",
    "-e": "--memory-file",
    "-F": "--disable-flush-all",
    "-f": "--slab-growth-factor",
    "-h": "--help",
    "-I": "--max-item-size",
    "-i": "--license",
    "-k": "--lock-memory",
    "-L": "--enable-largepages",
    "-l": "--listen",
    "-M": "--disable-evictions",
    "-m": "--memory-limit",
    "-N": "--napi-ids",
    "-n": "--slab-min-size",
    "-o": "--extended",
    "-P": "--pidfile",
    "-p": "--port",
    "-R": "--max-reqs-per-event",
    "-r": "--enable-coredumps",
    "-S": "--enable-sasl",
    "-s": "--unix-socket",
    "-t": "--threads",
    "-U": "--udp-port",
    "-u": "--user",
    "-V": "--version",
    "-v": "--verbose",
    "-W": "--disable-watch",
    "-X": "--disable-dumping",
    "-Y": "--auth-file",
    "-Z": "--enable-ssl",
}
"""The long name of each short option."""
