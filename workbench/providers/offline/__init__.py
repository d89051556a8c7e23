"""The model that needs no network: see `workbench.providers.offline.model`."""
