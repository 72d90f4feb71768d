"""Pure rules of the crawl: values in, values out; time is an argument."""
