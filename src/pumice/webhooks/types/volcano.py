"""The structs of Volcano's API, one name and its fields each; read by types.grammar."""

from typing import Final

VOLCANO: Final = """
batch.VolumeSpec
  mountPath! string, volumeClaimName string, volumeClaim *v1.PersistentVolumeClaimSpec
batch.LifecyclePolicy
  action bus.Action, event bus.Event, events []bus.Event, exitCode *int32, timeout *Duration
batch.DependsOn
  name []string, iteration batch.Iteration
batch.NetworkTopologySpec
  mode batch.NetworkTopologyMode, highestTierAllowed *int, highestTierName string
batch.PartitionPolicySpec
  totalPartitions! int32, partitionSize! int32, networkTopology *batch.NetworkTopologySpec,
  minPartitions int32
batch.TaskSpec
  name string, replicas int32, minAvailable *int32, template v1.PodTemplateSpec, policies
  []batch.LifecyclePolicy, topologyPolicy batch.NumaPolicy, maxRetry int32, dependsOn
  *batch.DependsOn, partitionPolicy *batch.PartitionPolicySpec
batch.JobSpec
  schedulerName string, minAvailable int32, volumes []batch.VolumeSpec, tasks []batch.TaskSpec,
  policies []batch.LifecyclePolicy, plugins {}[]string, runningEstimate *Duration, queue string,
  maxRetry int32, ttlSecondsAfterFinished *int32, priorityClassName string, minSuccess *int32,
  networkTopology *batch.NetworkTopologySpec
batch.JobState
  phase batch.JobPhase, reason string, message string, lastTransitionTime Time
batch.TaskState
  phase {v1.PodPhase}int32
batch.JobCondition
  status! batch.JobPhase, lastTransitionTime *Time
batch.JobStatus
  state batch.JobState, minAvailable int32, taskStatusCount {}batch.TaskState, pending int32,
  running int32, succeeded int32, failed int32, terminating int32, unknown int32, version int32,
  retryCount int32, runningDuration *Duration, controlledResources {}string, conditions
  []batch.JobCondition
batch.Job
  kind string, apiVersion string, metadata meta.ObjectMeta, spec batch.JobSpec, status
  batch.JobStatus
batch.JobTemplateSpec
  metadata meta.ObjectMeta, spec batch.JobSpec
batch.CronJobSpec
  schedule! string, timeZone *string, startingDeadlineSeconds *int64, concurrencyPolicy
  batch.ConcurrencyPolicy, suspend *bool, jobTemplate! batch.JobTemplateSpec,
  successfulJobsHistoryLimit *int32, failedJobsHistoryLimit *int32
batch.CronJobStatus
  active []v1.ObjectReference, lastScheduleTime *Time, lastSuccessfulTime *Time
batch.CronJob
  kind string, apiVersion string, metadata meta.ObjectMeta, spec batch.CronJobSpec, status
  batch.CronJobStatus
flow.HttpGet
  taskName string, path string, port int, httpHeader v1.HTTPHeader
flow.TcpSocket
  taskName string, port! int
flow.TaskStatus
  taskName string, phase string
flow.Probe
  httpGetList []flow.HttpGet, tcpSocketList []flow.TcpSocket, taskStatusList []flow.TaskStatus
flow.DependsOn
  targets []string, probe *flow.Probe
flow.Patch
  jobSpec batch.JobSpec
flow.Flow
  name! string, dependsOn *flow.DependsOn, patch *flow.Patch
flow.JobFlowSpec
  flows []flow.Flow, jobRetainPolicy flow.RetainPolicy
flow.JobRunningHistory
  startTimestamp Time, endTimestamp Time, state batch.JobPhase
flow.JobStatus
  name string, state batch.JobPhase, startTimestamp Time, endTimestamp Time, restartCount int32,
  runningHistories []flow.JobRunningHistory
flow.Condition
  phase batch.JobPhase, createTime Time, runningDuration *Duration, taskStatusCount
  {}batch.TaskState
flow.State
  phase flow.Phase
flow.JobFlowStatus
  pendingJobs []string, runningJobs []string, failedJobs []string, completedJobs []string,
  terminatedJobs []string, unKnowJobs []string, jobStatusList []flow.JobStatus, conditions
  {}flow.Condition, state flow.State
flow.JobFlow
  kind string, apiVersion string, metadata meta.ObjectMeta, spec flow.JobFlowSpec, status
  flow.JobFlowStatus
flow.JobTemplateStatus
  jobDependsOnList []string
flow.JobTemplate
  kind string, apiVersion string, metadata meta.ObjectMeta, spec batch.JobSpec, status
  flow.JobTemplateStatus
scheduling.Cluster
  name string, weight int32, capacity v1.ResourceList
scheduling.Guarantee
  resource v1.ResourceList
scheduling.NodeGroupAffinity
  requiredDuringSchedulingIgnoredDuringExecution []string,
  preferredDuringSchedulingIgnoredDuringExecution []string
scheduling.NodeGroupAntiAffinity
  requiredDuringSchedulingIgnoredDuringExecution []string,
  preferredDuringSchedulingIgnoredDuringExecution []string
scheduling.Affinity
  nodeGroupAffinity *scheduling.NodeGroupAffinity, nodeGroupAntiAffinity
  *scheduling.NodeGroupAntiAffinity
scheduling.QueueSpec
  weight int32, capability v1.ResourceList, reclaimable *bool, extendClusters
  []scheduling.Cluster, guarantee scheduling.Guarantee, affinity *scheduling.Affinity, type
  string, parent string, deserved v1.ResourceList, priority int32, dequeueStrategy
  scheduling.DequeueStrategy
scheduling.Reservation
  nodes []string, resource v1.ResourceList
scheduling.QueueStatus
  state scheduling.QueueState, unknown int32, pending int32, running int32, inqueue int32,
  completed int32, reservation scheduling.Reservation, allocated! v1.ResourceList
scheduling.Queue
  kind string, apiVersion string, metadata meta.ObjectMeta, spec scheduling.QueueSpec, status
  scheduling.QueueStatus
scheduling.NetworkTopologySpec
  mode scheduling.NetworkTopologyMode, highestTierAllowed *int, highestTierName string
scheduling.SubGroupPolicySpec
  name string, networkTopology *scheduling.NetworkTopologySpec, subGroupSize *int32,
  minSubGroups *int32, labelSelector *meta.LabelSelector, matchLabelKeys []string
scheduling.PodGroupSpec
  minMember int32, minTaskMember {}int32, queue string, priorityClassName string, minResources
  *v1.ResourceList, networkTopology *scheduling.NetworkTopologySpec, subGroupPolicy
  []scheduling.SubGroupPolicySpec
scheduling.PodGroupCondition
  type scheduling.PodGroupConditionType, status v1.ConditionStatus, transitionID string,
  lastTransitionTime Time, reason string, message string
scheduling.PodGroupStatus
  phase scheduling.PodGroupPhase, conditions []scheduling.PodGroupCondition, running int32,
  succeeded int32, failed int32
scheduling.PodGroup
  kind string, apiVersion string, metadata meta.ObjectMeta, spec scheduling.PodGroupSpec, status
  scheduling.PodGroupStatus
topology.ExactMatch
  name! string
topology.RegexMatch
  pattern! string
topology.MemberSelector
  exactMatch *topology.ExactMatch, regexMatch *topology.RegexMatch, labelMatch
  *meta.LabelSelector
topology.MemberSpec
  type topology.MemberType, selector topology.MemberSelector
topology.HyperNodeSpec
  tier int, tierName string, members []topology.MemberSpec
topology.HyperNodeStatus
  conditions []meta.Condition, nodeCount int64
topology.HyperNode
  kind string, apiVersion string, metadata meta.ObjectMeta, spec! topology.HyperNodeSpec, status
  topology.HyperNodeStatus
bus.Command
  kind string, apiVersion string, metadata meta.ObjectMeta, action string, target
  *meta.OwnerReference, reason string, message string
"""

TEXTS: Final = """
batch.ConcurrencyPolicy batch.Iteration batch.JobPhase batch.NetworkTopologyMode
batch.NumaPolicy bus.Action bus.Event flow.Phase flow.RetainPolicy meta.ConditionStatus
meta.LabelSelectorOperator scheduling.DequeueStrategy scheduling.NetworkTopologyMode
scheduling.PodGroupConditionType scheduling.PodGroupPhase scheduling.QueueState
topology.MemberType v1.AppArmorProfileType v1.AzureDataDiskCachingMode v1.AzureDataDiskKind
v1.Capability v1.ConditionStatus v1.ContainerRestartPolicy v1.ContainerRestartRuleAction
v1.ContainerRestartRuleOnExitCodesOperator v1.DNSPolicy v1.HostPathType v1.MountPropagationMode
v1.NodeInclusionPolicy v1.NodeSelectorOperator v1.OSName v1.PersistentVolumeAccessMode
v1.PersistentVolumeMode v1.PodConditionType v1.PodFSGroupChangePolicy v1.PodPhase
v1.PodSELinuxChangePolicy v1.PreemptionPolicy v1.ProcMountType v1.Protocol v1.PullPolicy
v1.RecursiveReadOnlyMode v1.ResourceName v1.ResourceResizeRestartPolicy v1.RestartPolicy
v1.SeccompProfileType v1.Signal v1.StorageMedium v1.SupplementalGroupsPolicy v1.TaintEffect
v1.TerminationMessagePolicy v1.TolerationOperator v1.URIScheme v1.UnsatisfiableConstraintAction
"""
"""Named types that are strings."""
