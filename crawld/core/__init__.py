"""Pure rules of the crawl: functions of values, without I/O. Time is an argument."""
