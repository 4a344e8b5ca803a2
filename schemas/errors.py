"""The one exception that means: the user can mend this."""


class EdgeError(Exception):
    """Bad input. Its text is one line that names the thing, the value, what was expected and the fix."""


class ConfigError(EdgeError):
    """A config field got a value outside its bounds, or an unknown field was given."""
