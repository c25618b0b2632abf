"""All figures, as Markdown."""

from bench import gateways, hot_path, page, reading, runs, stops, store, store_postgres

hot_path.main()
reading.main()
stops.main()
store.main()
store_postgres.main()
runs.main()
gateways.main()
page.main()
