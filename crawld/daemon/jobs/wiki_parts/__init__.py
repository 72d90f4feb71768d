"""Background work on the parts of wikis that sites cover: which titles belong to each."""
