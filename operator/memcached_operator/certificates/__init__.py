"""Our own source of the webhook's certificate, run by the leader where neither OLM nor cert-manager is one."""
