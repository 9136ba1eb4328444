"""results/report.html: one self-contained page from the tables, the records and the raw samples."""
