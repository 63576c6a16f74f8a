module memcached-operator.local/tools/pause

go 1.26.0
