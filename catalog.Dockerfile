# The catalog image, built by `make catalog-build`. It contains only data. OLM v1 reads /configs. OLM v0 serves /configs with its own
# opm if `grpcPodConfig.extractContent` of the CatalogSource is set (docs/install-olm.md).
FROM scratch
COPY catalog /configs
LABEL operators.operatorframework.io.index.configs.v1=/configs
