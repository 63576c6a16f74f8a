"""What a user of a command line sees: its arguments and errors, its progress, and its tables. The other packages of
tools/ use it too.
"""
