# One image for both processes: `memcached-operator` (controller) and `memcached-webhooks` (admission).
# Any image with Python 3.11 or newer will do as the base; the build image needs pip beside it.
ARG BASE_IMAGE=docker.io/library/python:3.13-slim
ARG BUILD_IMAGE=${BASE_IMAGE}

# Everything we depend on, exactly as locked. Built again only when the lock changes.
FROM ${BUILD_IMAGE} AS dependencies
WORKDIR /opt/memcached-operator
COPY requirements/runtime.txt /tmp/runtime.txt
# Byte code is written here, once, and trusted without a look at its source: both are read-only, and starts are quicker.
RUN python3 -m pip install --quiet --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
        --require-hashes --only-binary :all: --no-compile --target lib -r /tmp/runtime.txt \
    && rm -rf lib/bin \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash lib

# Our own packages, the two commands that pyproject.toml names, and the version.
FROM ${BUILD_IMAGE} AS source
WORKDIR /opt/memcached-operator
COPY pyproject.toml /tmp/pyproject.toml
RUN mkdir bin \
    && for part in operator webhooks; do \
        printf '#!/usr/bin/env python3\nimport sys\n\nfrom memcached_%s.__main__ import main\n\nsys.exit(main())\n' "$part" \
            > "bin/memcached-$part" || exit 1; \
    done \
    && chmod 0755 bin/* \
    && version=$(sed -n 's/^version = "\(.*\)"$/\1/p' /tmp/pyproject.toml) \
    && mkdir -p "lib/memcached_operator-$version.dist-info" \
    && printf 'Metadata-Version: 2.1\nName: memcached-operator\nVersion: %s\n' "$version" \
        > "lib/memcached_operator-$version.dist-info/METADATA"
COPY api operator webhooks lib/
RUN python3 -m compileall -q --invalidation-mode unchecked-hash lib

# What changes most comes last: a change of our code makes one small layer.
FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="memcached-operator" \
      org.opencontainers.image.description="A Kubernetes operator that keeps memcached running exactly as declared" \
      org.opencontainers.image.licenses="Apache-2.0"
# A base image may bring installers along; nothing in here installs anything.
RUN for lib in /usr/local/lib/python3*/site-packages /usr/lib/python3/dist-packages; do \
        rm -rf "$lib"/pip "$lib"/pip-* "$lib"/setuptools* "$lib"/wheel*; \
    done \
    && rm -rf /usr/local/bin/pip* /usr/bin/pip* /usr/local/lib/python3*/ensurepip /usr/lib/python3*/ensurepip
ENV PATH=/opt/memcached-operator/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/memcached-operator/lib \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONSAFEPATH=1
WORKDIR /
USER 65532:65532
ENTRYPOINT []
CMD ["memcached-operator"]
COPY --from=dependencies /opt/memcached-operator /opt/memcached-operator
COPY --from=source /opt/memcached-operator /opt/memcached-operator
