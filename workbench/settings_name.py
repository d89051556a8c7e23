"""The name of the settings files, which apply to their folder and the folders below."""

SETTINGS_NAME = "workbench.toml"
