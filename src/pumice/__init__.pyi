from pumice.library.clusters import Cluster as Cluster
from pumice.library.clusters import Explained as Explained
from pumice.library.clusters import WhatIf as WhatIf
from pumice.library.clusters import explain as explain
from pumice.library.clusters import load as load
from pumice.library.clusters import whatif as whatif
from pumice.library.histories import History as History
from pumice.library.recordings import Recording as Recording
from pumice.library.recordings import record as record
from pumice.library.searches import tune as tune
from pumice.library.simulations import Repeats as Repeats
from pumice.library.simulations import Result as Result
from pumice.library.simulations import Results as Results
from pumice.library.simulations import compare as compare
from pumice.library.simulations import repeat as repeat
from pumice.library.simulations import simulate as simulate
from pumice.library.tables import Table as Table
from pumice.library.workloads import nodes as nodes
from pumice.library.workloads import workload as workload

__version__: str
