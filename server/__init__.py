"""The REST service: settings, tables, the store and its writer thread, wire types and routes."""
