"""The built-in issuer of the webhook certificate, for installations without OLM and cert-manager."""
