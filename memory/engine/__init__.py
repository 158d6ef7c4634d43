"""Hold the rules of Observational Memory: frozen values in, frozen values out.

Nothing here reads a clock, a database, a network or a random number, and nothing
here waits. Whatever the engine needs to know is handed to it.
"""
