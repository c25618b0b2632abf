"""All figures, as Markdown."""

from bench import gateways, hot_path, reading, runs, starting, stops, store, store_postgres

hot_path.main()
starting.main()
reading.main()
stops.main()
store.main()
store_postgres.main()
runs.main()
gateways.main()
