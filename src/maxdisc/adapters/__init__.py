"""Other people's engines and containers, each in a module of its own that its extra installs."""
