"""All figures, as Markdown."""

from bench import gateways, hot_path, reading, runs, stops, store

hot_path.main()
reading.main()
stops.main()
store.main()
runs.main()
gateways.main()
