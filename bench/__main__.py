"""All figures, as Markdown."""

from bench import gateways, hot_path, reading, stops, store

hot_path.main()
reading.main()
stops.main()
store.main()
gateways.main()
