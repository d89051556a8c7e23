"""The name of settings files. A settings file applies to its folder and the folders below."""

SETTINGS_NAME = "workbench.toml"
