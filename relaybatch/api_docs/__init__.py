"""The description of the HTTP interface: the OpenAPI document, and the page on which it can be read and tried."""
