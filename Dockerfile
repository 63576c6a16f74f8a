# Two images: the operator's (the last stage), with `memcached-operator` (controller) and `memcached-webhooks` (admission),
# and that of the agents in the pods of caches (`docker build --target agent`), with `memcached-agent`.
# The base image needs Python 3.11 or newer; the build image needs the same Python, and pip. A release names the base by
# digest (docs/releasing.md). Every RUN runs on the platform that builds, so an image for another platform needs no emulation.
ARG BASE_IMAGE=docker.io/library/python:3.13-slim
ARG BUILD_IMAGE=${BASE_IMAGE}

# The dependencies, as pinned in the lock file. This stage is rebuilt only when the lock file changes.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS dependencies
ARG TARGETARCH
WORKDIR /opt/memcached-operator
COPY requirements/runtime.txt /tmp/runtime.txt
# Only wheels, of the platform that the image is for: nothing is compiled for a machine.
# Compile the bytecode once, without source checks at startup: the image is read-only, and the processes start faster. One
# process compiles everything in order, so that the result is always the same.
RUN case "$TARGETARCH" in \
        amd64) machine=x86_64 ;; \
        arm64) machine=aarch64 ;; \
        *) echo "TARGETARCH=$TARGETARCH must be amd64 or arm64" >&2; exit 1 ;; \
    esac \
    && python3 -m pip install --quiet --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
        --require-hashes --only-binary :all: --no-compile --target lib -r /tmp/runtime.txt \
        --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
    && rm -rf lib/bin \
    && python3 -m compileall -q --invalidation-mode unchecked-hash lib

# The version, and the three commands from pyproject.toml.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS project
WORKDIR /opt/memcached-operator
COPY pyproject.toml /tmp/pyproject.toml
RUN mkdir bin /tmp/bin \
    && for part in agent operator webhooks; do \
        printf '#!/usr/bin/env python3\nimport sys\n\nfrom memcached_%s.__main__ import main\n\nsys.exit(main())\n' "$part" \
            > "/tmp/bin/memcached-$part" || exit 1; \
    done \
    && chmod 0755 /tmp/bin/* \
    && version=$(sed -n 's/^version = "\(.*\)"$/\1/p' /tmp/pyproject.toml) \
    && mkdir -p "lib/memcached_operator-$version.dist-info" \
    && printf 'Metadata-Version: 2.1\nName: memcached-operator\nVersion: %s\n' "$version" \
        > "lib/memcached_operator-$version.dist-info/METADATA"

FROM project AS agent-source
COPY agent lib/
RUN mv /tmp/bin/memcached-agent bin \
    && python3 -m compileall -q --invalidation-mode unchecked-hash lib \
    && chmod -R a+rX .

FROM project AS operator-source
COPY api operator webhooks lib/
COPY agent/memcached_tls lib/memcached_tls/
RUN mv /tmp/bin/memcached-operator /tmp/bin/memcached-webhooks bin \
    && python3 -m compileall -q --invalidation-mode unchecked-hash lib \
    && chmod -R a+rX .

# The base image without package installers: nothing is installed at run time, and no layer contains them.
FROM --platform=$TARGETPLATFORM ${BASE_IMAGE} AS base

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS pruned
COPY --from=base / /base
RUN cd /base \
    && for lib in usr/local/lib/python3* usr/lib/python3*; do \
        rm -rf "$lib/ensurepip"; \
        for packages in "$lib/site-packages" "$lib/dist-packages"; do \
            rm -rf "$packages"/pip "$packages"/pip-* "$packages"/setuptools* "$packages"/pkg_resources "$packages"/wheel*; \
        done; \
    done \
    && rm -rf usr/local/bin/pip* usr/bin/pip* usr/share/python-wheels

# What both images share.
FROM scratch AS runtime
COPY --from=pruned /base /
ENV PATH=/opt/memcached-operator/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/memcached-operator/lib \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONSAFEPATH=1
WORKDIR /
USER 65532:65532
ENTRYPOINT []

FROM runtime AS agent
LABEL org.opencontainers.image.title="memcached-agent" \
      org.opencontainers.image.description="The process beside memcached: metrics, reloads, warmth, changes of memory" \
      org.opencontainers.image.licenses="Apache-2.0"
CMD ["memcached-agent"]
COPY --from=agent-source /opt/memcached-operator /opt/memcached-operator

FROM runtime
LABEL org.opencontainers.image.title="memcached-operator" \
      org.opencontainers.image.description="A Kubernetes operator that keeps memcached running exactly as declared" \
      org.opencontainers.image.licenses="Apache-2.0"
CMD ["memcached-operator"]
# The files that change most often are copied last: a code change creates one small layer.
COPY --from=dependencies /opt/memcached-operator /opt/memcached-operator
COPY --from=operator-source /opt/memcached-operator /opt/memcached-operator
