"""What `bench/experiments` is made of: servers, client, data, one module an experiment, report and plots."""
