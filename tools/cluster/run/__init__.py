"""The components as processes: their command lines, files and accounts, the supervisor that starts and probes them,
and the clients of both.
"""
