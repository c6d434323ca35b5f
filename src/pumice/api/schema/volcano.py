"""Volcano's kinds; read by schema.grammar."""

from typing import Final

JOBS: Final = r"""
batch.VolumeSpec
  mountPath! string length>=1 pattern=^[^:]+$ -- Where containers see it.
  volumeClaimName string length<=253 -- A claim that is there already.
  volumeClaim *v1.PersistentVolumeClaimSpec -- The claim to make.
batch.LifecyclePolicy
  action bus.Action -- What to do: RestartJob, AbortJob, CompleteJob and others.
  event bus.Event enum=EVENTS -- What happened.
  events []bus.Event enum=EVENTS -- Any of these happened.
  exitCode *int32 -- A container ended with this code.
  timeout *Duration -- How long to wait before acting, such as 10m.
batch.DependsOn
  name []string -- Tasks that must be ready first.
  iteration batch.Iteration -- any or all of the tasks named.
batch.NetworkTopologySpec
  mode batch.NetworkTopologyMode enum=hard|soft default=hard -- hard: must; soft: should.
  highestTierAllowed *int >=0 -- The highest tier the pods may span.
  highestTierName string length<=253 -- The same by the name of the tier.
batch.PartitionPolicySpec
  totalPartitions! int32 >=1 -- How many partitions there are.
  partitionSize! int32 >=1 -- Pods of one partition.
  networkTopology *batch.NetworkTopologySpec -- How close the pods of one partition lie.
  minPartitions int32 >=0 default=0 -- Partitions that must be placed.
batch.TaskSpec
  name string length<=63 pattern=LABEL -- The task's name.
  replicas int32 >=0 -- How many pods.
  minAvailable *int32 >=0 -- Pods of this task that must be able to start.
  template v1.PodTemplateSpec -- What each pod is made from.
  policies []batch.LifecyclePolicy -- What to do when something happens to the task.
  topologyPolicy batch.NumaPolicy enum=none|best-effort|restricted|single-numa-node
    -- How CPUs lie on NUMA nodes.
  maxRetry int32 >=0 -- How often to try again.
  dependsOn *batch.DependsOn -- Which tasks this one waits for.
  partitionPolicy *batch.PartitionPolicySpec -- How the task's pods are divided.
batch.JobSpec
  schedulerName string length<=63 -- Which scheduler places its pods.
  minAvailable int32 >=0 -- Pods that must be able to start together.
  volumes []batch.VolumeSpec -- Volumes for all pods.
  tasks []batch.TaskSpec items>=1 -- The pods, by their part in the job.
  policies []batch.LifecyclePolicy -- What to do when something happens.
  plugins {}[]string -- Job plugins and their arguments.
  runningEstimate *Duration -- How long the user thinks it runs, such as 1h.
  queue string length<=253 pattern=SUBDOMAIN default=default -- The queue it waits in.
  maxRetry int32 >=0 default=3 -- How often to restart.
  ttlSecondsAfterFinished *int32 >=0 -- Seconds to keep the job after its end.
  priorityClassName string length<=253 pattern=SUBDOMAIN -- The job's PriorityClass.
  minSuccess *int32 >=1 -- Pods whose success makes the job complete.
  networkTopology *batch.NetworkTopologySpec -- How close the pods must or should lie.
batch.JobState
  phase batch.JobPhase enum=JOB_PHASES, reason string, message string, lastTransitionTime Time
batch.TaskState
  phase {}int32
batch.JobCondition
  status! batch.JobPhase, lastTransitionTime *Time
batch.JobStatus
  state batch.JobState -- Where the job stands.
  minAvailable int32 >=0 -- The job's minAvailable.
  taskStatusCount {}batch.TaskState -- Numbers of pods by task and phase.
  pending int32 >=0 -- How many pods: pending.
  running int32 >=0 -- How many pods: running.
  succeeded int32 >=0 -- How many pods: succeeded.
  failed int32 >=0 -- How many pods: failed.
  terminating int32 >=0 -- How many pods: terminating.
  unknown int32 >=0 -- How many pods: unknown.
  version int32 >=0 -- Rises with each restart.
  retryCount int32 >=0 -- How often it was restarted.
  runningDuration *Duration -- How long it ran.
  controlledResources {}string -- What was made for the job.
  conditions []batch.JobCondition -- Phases and when they began.
batch.Job kind -- A batch job: tasks whose pods are scheduled together.
  spec batch.JobSpec -- What to run.
  status batch.JobStatus -- What became of the job.
batch.JobTemplateSpec
  metadata meta.ObjectMeta -- Labels and annotations of the jobs.
  spec batch.JobSpec -- The jobs' specification.
batch.CronJobSpec
  schedule! string -- When, in the format of cron.
  timeZone *string -- The time zone of the schedule, such as Europe/Paris.
  startingDeadlineSeconds *int64 >=0 -- Seconds after which a missed start is given up.
  concurrencyPolicy batch.ConcurrencyPolicy enum=Allow|Forbid|Replace default=Allow
    -- What to do if the one before still runs.
  suspend *bool default=false -- Start no more jobs.
  jobTemplate! batch.JobTemplateSpec -- What each job is made from.
  successfulJobsHistoryLimit *int32 >=0 default=3 -- How many completed jobs to keep.
  failedJobsHistoryLimit *int32 >=0 default=1 -- How many failed jobs to keep.
batch.CronJobStatus
  active []v1.ObjectReference atomic -- Jobs that run.
  lastScheduleTime *Time -- When a job was last started.
  lastSuccessfulTime *Time -- When a job last completed.
batch.CronJob kind -- Starts Volcano jobs by the clock.
  spec batch.CronJobSpec -- What to start and when.
  status batch.CronJobStatus -- What was started.
flow.HttpGet
  taskName string length<=253, path string, port int >=0 <=65535, httpHeader v1.HTTPHeader
flow.TcpSocket
  taskName string length<=253, port! int >=0 <=65535
flow.TaskStatus
  taskName string length<=253, phase string length<=63
flow.Probe
  httpGetList []flow.HttpGet -- Addresses that must answer.
  tcpSocketList []flow.TcpSocket -- Ports that must be open.
  taskStatusList []flow.TaskStatus -- Phases tasks must have reached.
flow.DependsOn
  targets []string -- Steps that must be done first.
  probe *flow.Probe -- What must hold besides.
flow.Patch
  jobSpec batch.JobSpec bare -- What differs from the template.
flow.Flow
  name! string length>=1 -- The JobTemplate to run.
  dependsOn *flow.DependsOn -- What a step waits for.
  patch *flow.Patch -- Changes to the template.
flow.JobFlowSpec
  flows []flow.Flow -- The steps.
  jobRetainPolicy flow.RetainPolicy enum=retain|delete -- Whether jobs outlive the flow.
flow.JobRunningHistory
  startTimestamp Time, endTimestamp Time, state batch.JobPhase
flow.JobStatus
  name string, state batch.JobPhase, startTimestamp Time, endTimestamp Time, restartCount int32 >=0
  runningHistories []flow.JobRunningHistory
flow.Condition
  phase batch.JobPhase, createTime Time, runningDuration *Duration
  taskStatusCount {}batch.TaskState
flow.State
  phase flow.Phase enum=Succeed|Terminating|Failed|Running|Pending
flow.JobFlowStatus
  pendingJobs []string, runningJobs []string, failedJobs []string, completedJobs []string
  terminatedJobs []string, unKnowJobs []string
  jobStatusList []flow.JobStatus -- The jobs so far.
  conditions {}flow.Condition -- What became of each job.
  state flow.State -- Where the flow stands.
flow.JobFlow kind -- Jobs that are started one after another.
  spec flow.JobFlowSpec -- Jobs and their order.
  status flow.JobFlowStatus -- How far the flow is.
flow.JobTemplateStatus
  jobDependsOnList []string -- Jobs made from it.
flow.JobTemplate kind -- What the jobs of a flow are made from.
  spec batch.JobSpec -- The jobs' specification.
  status flow.JobTemplateStatus -- Who uses it.
bus.Command kind -- An order to a job or a queue; it is deleted when it is heeded.
  action string -- What to do: AbortJob, ResumeJob, OpenQueue, CloseQueue and others.
  target *meta.OwnerReference -- The job or queue it is for.
  reason string -- Why.
  message string -- More about it.
"""


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
shard.NodeShard kind -- Nodes of one of several schedulers.
  spec shard.NodeShardSpec required, status shard.NodeShardStatus
"""
