"""The kinds behind scheduling: gangs, queues, nodes and the network; read by schema.grammar."""

from typing import Final

SCHEDULING: Final = r"""
scheduling.Cluster
  name string, weight int32, capacity v1.ResourceList
scheduling.Guarantee
  resource v1.ResourceList
scheduling.NodeGroupAffinity
  requiredDuringSchedulingIgnoredDuringExecution []string -- Node groups it is held to.
  preferredDuringSchedulingIgnoredDuringExecution []string -- Node groups it would like.
scheduling.NodeGroupAntiAffinity like scheduling.NodeGroupAffinity
scheduling.Affinity
  nodeGroupAffinity *scheduling.NodeGroupAffinity -- Where its pods go.
  nodeGroupAntiAffinity *scheduling.NodeGroupAntiAffinity -- Where its pods do not go.
scheduling.QueueSpec
  weight int32 >=1 <=65535 default=1 -- Its share against others.
  capability v1.ResourceList -- The most it may use.
  reclaimable *bool -- Whether others may claim back what it uses beyond its share.
  extendClusters []scheduling.Cluster -- Other clusters its jobs may go to.
  guarantee scheduling.Guarantee -- What it always keeps.
  affinity *scheduling.Affinity -- Node groups for its pods.
  type string length<=253 -- Kind of queue.
  parent string length<=253 pattern=SUBDOMAIN -- The queue above it.
  deserved v1.ResourceList -- What it may claim back from others.
  priority int32 >=0 -- Which queue comes first.
  dequeueStrategy scheduling.DequeueStrategy enum=fifo|traverse default=traverse
    -- Whether a job that does not fit holds up those behind it.
scheduling.Reservation
  nodes []string, resource v1.ResourceList
scheduling.QueueStatus
  state scheduling.QueueState enum=Open|Closed|Closing|Unknown -- Whether it takes jobs.
  unknown int32 >=0 -- How many PodGroups: unknown.
  pending int32 >=0 -- How many PodGroups: pending.
  running int32 >=0 -- How many PodGroups: running.
  inqueue int32 >=0 -- How many PodGroups: inqueue.
  completed int32 >=0 -- How many PodGroups: completed.
  reservation scheduling.Reservation -- What is kept for it.
  allocated! v1.ResourceList optional -- What it uses.
scheduling.Queue kind -- Where gangs wait and what they share.
  spec scheduling.QueueSpec -- The queue's share and bounds.
  status scheduling.QueueStatus -- What the queue uses and holds.
scheduling.NetworkTopologySpec
  mode scheduling.NetworkTopologyMode enum=hard|soft default=hard -- hard: must; soft: should.
  highestTierAllowed *int >=0 -- The highest tier the pods may span.
  highestTierName string length<=253 -- The same by the name of the tier.
scheduling.SubGroupPolicySpec
  name string length<=253 -- The policy's name.
  networkTopology *scheduling.NetworkTopologySpec -- How close the pods of one subgroup lie.
  subGroupSize *int32 >=1 default=1 -- Pods of one subgroup.
  minSubGroups *int32 >=0 default=0 -- Subgroups that must be placed.
  labelSelector *meta.LabelSelector -- Which pods divide by this policy.
  matchLabelKeys []string atomic -- Labels whose values tell subgroups apart.
scheduling.PodGroupSpec
  minMember int32 >=0 -- Pods that must be able to start together.
  minTaskMember {}int32 -- Pods of each task that must be able to start.
  queue string length<=253 pattern=SUBDOMAIN default=default -- The queue it waits in.
  priorityClassName string length<=253 -- The group's PriorityClass.
  minResources *v1.ResourceList -- What must be free before any pod may start.
  networkTopology *scheduling.NetworkTopologySpec -- How close the pods must or should lie.
  subGroupPolicy []scheduling.SubGroupPolicySpec -- How the group divides.
scheduling.PodGroupCondition
  type scheduling.PodGroupConditionType, status v1.ConditionStatus, transitionID string
  lastTransitionTime Time, reason string, message string
scheduling.PodGroupStatus
  phase scheduling.PodGroupPhase enum=Pending|Running|Unknown|Inqueue|Completed -- How far it is.
  conditions []scheduling.PodGroupCondition -- Why it waits or not.
  running int32 >=0 -- Pods that run.
  succeeded int32 >=0 -- Pods that succeeded.
  failed int32 >=0 -- Pods that failed.
scheduling.PodGroup kind -- A gang: pods that are scheduled together.
  spec scheduling.PodGroupSpec -- What the gang needs.
  status scheduling.PodGroupStatus -- How far the gang is.
topology.ExactMatch
  name! string length>=1 length<=253 pattern=SUBDOMAIN
topology.RegexMatch
  pattern! string length>=1
topology.MemberSelector exclusive
  exactMatch *topology.ExactMatch -- One by name.
  regexMatch *topology.RegexMatch -- Those whose name matches.
  labelMatch *meta.LabelSelector -- Those with these labels.
topology.MemberSpec
  type topology.MemberType required enum=Node|HyperNode -- What is meant.
  selector topology.MemberSelector -- Which.
topology.HyperNodeSpec
  tier int required >=0 -- How far apart the members are; lower is closer.
  tierName string length<=253 -- What the tier is called.
  members []topology.MemberSpec items>=1 -- What lies within.
topology.HyperNodeStatus
  conditions []meta.Condition -- State of the part.
  nodeCount int64 >=0 -- How many nodes lie within.
topology.HyperNode kind -- A part of the network: nodes, or smaller parts, that lie close to each
    other.
  spec! topology.HyperNodeSpec optional -- A part of the network.
  status topology.HyperNodeStatus -- What was found.
nodeinfo.CPUInfo
  numa int >=0, socket int >=0, core int >=0
nodeinfo.ResourceInfo
  allocatable string, capacity int
nodeinfo.ContainerAllocation
  name string, allocations {}string
nodeinfo.PodAllocation
  name string, namespace string, uid string
  containerAllocations []nodeinfo.ContainerAllocation
nodeinfo.NumatopoSpec
  policies {}string -- The kubelet's policies.
  resReserved {}string -- What is kept for the system.
  numares {}nodeinfo.ResourceInfo -- Resources by name and their sets.
  cpuDetail {}nodeinfo.CPUInfo -- Where each CPU lies.
  podAllocations []nodeinfo.PodAllocation -- What pods hold.
nodeinfo.Numatopology kind -- The NUMA nodes of a node; its name is the node's.
  spec nodeinfo.NumatopoSpec -- The CPUs of a node.
config.MemoryQos
  highRatio int >=0 <=100 default=100, lowRatio int >=0 <=100 default=0
  minRatio int >=0 <=100 default=0
config.ColocationConfigurationSpec
  selector *meta.LabelSelector -- Which pods.
  memoryQos *config.MemoryQos
config.ColocationConfigurationStatus
  conditions []meta.Condition keys=type
config.ColocationConfiguration kind -- Service on shared nodes; kept for Volcano's node agent,
    Pumice does not read it.
  spec config.ColocationConfigurationSpec required, status config.ColocationConfigurationStatus
shard.NodeShardSpec
  nodesDesired []string required
shard.NodeShardStatus
  lastUpdateTime Time, nodesInUse []string, nodesToRemove []string, nodesToAdd []string
shard.NodeShard kind -- Nodes of one of several schedulers; kept for Volcano, Pumice does not
    read it.
  spec shard.NodeShardSpec required, status shard.NodeShardStatus
"""
