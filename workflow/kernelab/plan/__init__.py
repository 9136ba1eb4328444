"""The plan: config.yaml and the catalogue, read strictly, as typed frozen objects. Pure: runs at every DAG parse."""
