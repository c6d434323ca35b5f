"""Choice of victims: candidates node by node for one task, bundles of whole gangs for a job."""
