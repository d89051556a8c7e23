"""The name of the files with settings for the suites in their folder and below."""

SETTINGS_NAME = "workbench.toml"
