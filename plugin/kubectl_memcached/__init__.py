"""`kubectl memcached`: shows and operates caches with the rights of the user of kubectl.

It imports nothing of the operator. It reads JSON, so it works with older operators.
"""
