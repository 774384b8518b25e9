"""memoryd's tests: `unit/` mirrors the packages, `contract/`, `property/` and `e2e/` say what must hold."""
