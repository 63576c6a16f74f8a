# One image for all processes: `memcached-operator` (controller), `memcached-webhooks` (admission), and
# `memcached-agent` (beside memcached).
# The base image needs Python 3.11 or newer; the build image also needs pip.
ARG BASE_IMAGE=docker.io/library/python:3.13-slim
ARG BUILD_IMAGE=${BASE_IMAGE}

# The dependencies, as pinned in the lock file. This stage is rebuilt only when the lock file changes.
FROM ${BUILD_IMAGE} AS dependencies
WORKDIR /opt/memcached-operator
COPY requirements/runtime.txt /tmp/runtime.txt
# Compile the bytecode once, without source checks at startup: the image is read-only, and the processes start faster.
RUN python3 -m pip install --quiet --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
        --require-hashes --only-binary :all: --no-compile --target lib -r /tmp/runtime.txt \
    && rm -rf lib/bin \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash lib

# The packages of this project, the three commands from pyproject.toml, and the version.
FROM ${BUILD_IMAGE} AS source
WORKDIR /opt/memcached-operator
COPY pyproject.toml /tmp/pyproject.toml
RUN mkdir bin \
    && for part in agent operator webhooks; do \
        printf '#!/usr/bin/env python3\nimport sys\n\nfrom memcached_%s.__main__ import main\n\nsys.exit(main())\n' "$part" \
            > "bin/memcached-$part" || exit 1; \
    done \
    && chmod 0755 bin/* \
    && version=$(sed -n 's/^version = "\(.*\)"$/\1/p' /tmp/pyproject.toml) \
    && mkdir -p "lib/memcached_operator-$version.dist-info" \
    && printf 'Metadata-Version: 2.1\nName: memcached-operator\nVersion: %s\n' "$version" \
        > "lib/memcached_operator-$version.dist-info/METADATA"
COPY agent api operator webhooks lib/
RUN python3 -m compileall -q --invalidation-mode unchecked-hash lib

# The files that change most often are copied last: a code change creates one small layer.
FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="memcached-operator" \
      org.opencontainers.image.description="A Kubernetes operator that keeps memcached running exactly as declared" \
      org.opencontainers.image.licenses="Apache-2.0"
# Remove the package installers of the base image: nothing is installed at run time.
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
