"""All figures, as Markdown."""

from bench import gateways, hot_path, leaving, page, reading, ready, runs, start, stops, store, store_postgres, workers

start.main()
ready.main()
hot_path.main()
reading.main()
stops.main()
leaving.main()
store.main()
store_postgres.main()
workers.main()
runs.main()
gateways.main()
page.main()
