# The catalogue as an image: `make catalog-build`. Nothing but data: OLM v1 reads /configs, and OLM v0 serves it with its
# own opm, told by `grpcPodConfig.extractContent` of the CatalogSource (docs/install.md).
FROM scratch
COPY catalog /configs
LABEL operators.operatorframework.io.index.configs.v1=/configs
