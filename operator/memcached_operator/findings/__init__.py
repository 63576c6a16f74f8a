"""Why pods of a workload do not exist, do not run or are not ready, in the cluster's words, with the remedies."""
