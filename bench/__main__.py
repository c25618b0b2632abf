"""All figures, as Markdown."""

from bench import gateways, hot_path, leaving, reading, runs, start, stops, store, store_postgres, workers

start.main()
hot_path.main()
reading.main()
stops.main()
leaving.main()
store.main()
store_postgres.main()
workers.main()
runs.main()
gateways.main()
