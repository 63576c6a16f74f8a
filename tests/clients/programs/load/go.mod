module memcached-operator.local/tests/load

go 1.26.0
