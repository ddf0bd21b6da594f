"""One HTTP exchange: connections, TLS, proxies."""
