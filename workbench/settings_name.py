"""The name of the files that hold settings for the suites beside them and below."""

SETTINGS_NAME = "workbench.toml"
