"""All figures, as Markdown."""

from bench import gateways, hot_path, reading, store

hot_path.main()
reading.main()
store.main()
gateways.main()
