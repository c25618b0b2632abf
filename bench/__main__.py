"""All figures, as Markdown."""

from bench import gateways, hot_path

hot_path.main()
gateways.main()
