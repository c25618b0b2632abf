"""All figures, as Markdown."""

from bench import gateways, hot_path, store

hot_path.main()
store.main()
gateways.main()
