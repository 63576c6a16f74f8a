"""The ClusterServiceVersion (CSV): each module generates one part of it, `service_version` the whole object."""
