"""Kubernetes' own kinds other than pods: the fields that Pumice reads, to check their types."""

from functools import cache
from typing import Final

BUILT_INS: Final = r"""
v1.StatusCondition
  type string, status string, reason string, message string, lastTransitionTime Time
  lastProbeTime Time, lastHeartbeatTime Time, observedGeneration int64
v1.NamespaceStatus
  phase string, conditions []v1.StatusCondition
v1.Namespace kind
  spec any, status v1.NamespaceStatus
v1.Taint
  key! string, value string, effect! v1.TaintEffect, timeAdded *Time
v1.NodeSpec
  podCIDR string, podCIDRs []string, providerID string, unschedulable bool, taints []v1.Taint
v1.ContainerImage
  names []string, sizeBytes int64
v1.AttachedVolume
  name string, devicePath string
v1.NodeStatus
  capacity v1.ResourceList, allocatable v1.ResourceList, phase string
  conditions []v1.StatusCondition, addresses []any, images []v1.ContainerImage
  volumesInUse []string, volumesAttached []v1.AttachedVolume
v1.Node kind
  spec v1.NodeSpec, status v1.NodeStatus
v1.ConfigMap kind
  immutable *bool, data {}string, binaryData {}string
v1.Secret kind
  immutable *bool, data {}string, stringData {}string, type string
v1.ServiceAccount kind
  secrets []v1.ObjectReference, imagePullSecrets []v1.LocalObjectReference
  automountServiceAccountToken *bool
v1.ScopedResourceSelectorRequirement
  scopeName! string, operator! string, values []string
v1.ScopeSelector
  matchExpressions []v1.ScopedResourceSelectorRequirement
v1.ResourceQuotaSpec
  hard v1.ResourceList, scopes []string, scopeSelector *v1.ScopeSelector
v1.ResourceQuotaStatus
  hard v1.ResourceList, used v1.ResourceList
v1.ResourceQuota kind
  spec v1.ResourceQuotaSpec, status v1.ResourceQuotaStatus
v1.LimitRangeItem
  type! string, default v1.ResourceList, defaultRequest v1.ResourceList, max v1.ResourceList
  min v1.ResourceList, maxLimitRequestRatio v1.ResourceList
v1.LimitRangeSpec
  limits []v1.LimitRangeItem
v1.LimitRange kind
  spec v1.LimitRangeSpec
v1.ServicePort
  name string, protocol string, appProtocol *string, port! int32, targetPort IntOrString
  nodePort int32
v1.ServiceSpec
  ports []v1.ServicePort, selector {}string, clusterIP string, clusterIPs []string, type string
  externalIPs []string, sessionAffinity string, externalName string, ipFamilies []string
v1.Service kind
  spec v1.ServiceSpec, status any
v1.PersistentVolumeClaimStatus
  phase string, accessModes []string, capacity v1.ResourceList, conditions []v1.StatusCondition
v1.PersistentVolumeClaim kind
  spec v1.PersistentVolumeClaimSpec, status v1.PersistentVolumeClaimStatus
v1.VolumeNodeAffinity
  required *v1.NodeSelector
v1.PersistentVolumeSpec
  capacity v1.ResourceList, accessModes []string, claimRef *v1.ObjectReference
  persistentVolumeReclaimPolicy string, storageClassName string, mountOptions []string
  volumeMode *string, nodeAffinity *v1.VolumeNodeAffinity
v1.PersistentVolume kind
  spec v1.PersistentVolumeSpec, status any
v1.Event kind
  involvedObject v1.ObjectReference, reason string, message string, firstTimestamp Time
  lastTimestamp Time, count int32, type string, reportingComponent string, action string
v1.ContainerStatus
  name string, state any, lastState any, ready bool, restartCount int32, image string
v1.PodStatus
  phase string, conditions []v1.StatusCondition, message string, reason string
  nominatedNodeName string, hostIP string, podIP string, startTime *Time, qosClass string
  containerStatuses []v1.ContainerStatus, initContainerStatuses []v1.ContainerStatus
v1.RunningPod kind
  status v1.PodStatus
policy.PodDisruptionBudgetSpec
  minAvailable *IntOrString, selector *meta.LabelSelector, maxUnavailable *IntOrString
  unhealthyPodEvictionPolicy *string
policy.PodDisruptionBudgetStatus
  observedGeneration int64, disruptedPods {}Time, disruptionsAllowed int32, currentHealthy int32
  desiredHealthy int32, expectedPods int32, conditions []v1.StatusCondition
policy.PodDisruptionBudget kind
  spec policy.PodDisruptionBudgetSpec, status policy.PodDisruptionBudgetStatus
priority.PriorityClass kind
  value! int32, globalDefault bool, description string, preemptionPolicy *string
priority.GangSchedulingPolicy
  minCount! int32
priority.SchedulingPolicy
  basic any, gang *priority.GangSchedulingPolicy
priority.TopologyConstraint
  key! string
priority.SchedulingConstraints
  topology []priority.TopologyConstraint
priority.PodGroupTemplate
  name string, schedulingPolicy! priority.SchedulingPolicy, priorityClassName string
  schedulingConstraints *priority.SchedulingConstraints, priority *int32
priority.PodGroup kind
  spec! priority.PodGroupTemplate, status any
priority.WorkloadSpec
  controllerRef any, podGroupTemplates! []priority.PodGroupTemplate
priority.Workload kind
  spec! priority.WorkloadSpec
storage.StorageClass kind
  provisioner! string, parameters {}string, reclaimPolicy *string, mountOptions []string
  allowVolumeExpansion *bool, volumeBindingMode *string
storage.VolumeNodeResources
  count *int32
storage.CSINodeDriver
  name! string, nodeID! string, topologyKeys []string, allocatable *storage.VolumeNodeResources
storage.CSINodeSpec
  drivers []storage.CSINodeDriver
storage.CSINode kind
  spec storage.CSINodeSpec
storage.CSIDriverSpec
  attachRequired *bool, podInfoOnMount *bool, volumeLifecycleModes []string, storageCapacity *bool
  fsGroupPolicy *string, tokenRequests []any, requiresRepublish *bool, seLinuxMount *bool
  nodeAllocatableUpdatePeriodSeconds *int64, serviceAccountTokenInSecrets *bool
storage.CSIDriver kind
  spec! storage.CSIDriverSpec
storage.CSIStorageCapacity kind
  nodeTopology *meta.LabelSelector, storageClassName! string, capacity *Quantity
  maximumVolumeSize *Quantity
coordination.LeaseSpec
  holderIdentity *string, leaseDurationSeconds *int32, leaseTransitions *int32
coordination.Lease kind
  spec coordination.LeaseSpec
apps.RollingUpdate
  maxSurge *IntOrString, maxUnavailable *IntOrString, partition *int32
apps.Strategy
  type string, rollingUpdate *apps.RollingUpdate
apps.ReplicatedSpec
  replicas *int32, selector *meta.LabelSelector, template v1.PodTemplateSpec
  minReadySeconds int32, revisionHistoryLimit *int32, progressDeadlineSeconds *int32, paused bool
  strategy apps.Strategy, updateStrategy apps.Strategy, podManagementPolicy string
  serviceName string, volumeClaimTemplates []v1.PersistentVolumeClaim
apps.ReplicatedStatus
  replicas int32, readyReplicas int32, availableReplicas int32, updatedReplicas int32
  unavailableReplicas int32, currentReplicas int32, fullyLabeledReplicas int32
  observedGeneration int64, currentRevision string, updateRevision string
  conditions []v1.StatusCondition
apps.DaemonSet kind
  spec apps.ReplicatedSpec, status apps.ReplicatedStatus
apps.Deployment kind
  spec apps.ReplicatedSpec, status apps.ReplicatedStatus
apps.ReplicaSet kind
  spec apps.ReplicatedSpec, status apps.ReplicatedStatus
apps.StatefulSet kind
  spec apps.ReplicatedSpec, status apps.ReplicatedStatus
batchv1.JobSpec
  parallelism *int32, completions *int32, activeDeadlineSeconds *int64, backoffLimit *int32
  completionMode *string, suspend *bool, manualSelector *bool, selector *meta.LabelSelector
  ttlSecondsAfterFinished *int32, managedBy *string, template v1.PodTemplateSpec
batchv1.JobStatus
  conditions []v1.StatusCondition, startTime *Time, completionTime *Time, active int32
  succeeded int32, failed int32, completedIndexes string, failedIndexes *string
batchv1.Job kind
  spec batchv1.JobSpec, status batchv1.JobStatus
resource.CELSelector
  expression! string
resource.DeviceSelector
  cel *resource.CELSelector
resource.OpaqueConfiguration
  driver! string, parameters! any
resource.DeviceConfiguration
  source string, requests []string, opaque *resource.OpaqueConfiguration
resource.DeviceToleration
  key string, operator string, value string, effect string, tolerationSeconds *int64
resource.CapacityRequirements
  requests v1.ResourceList
resource.DeviceSubRequest
  name! string, deviceClassName! string, selectors []resource.DeviceSelector, allocationMode string
  count int64, adminAccess *bool, tolerations []resource.DeviceToleration
  capacity *resource.CapacityRequirements
resource.DeviceRequest like resource.DeviceSubRequest
  exactly *resource.DeviceSubRequest, firstAvailable []resource.DeviceSubRequest
resource.DeviceConstraint
  requests []string, matchAttribute *string, distinctAttribute *string
resource.DeviceClaim
  requests []resource.DeviceRequest, constraints []resource.DeviceConstraint
  config []resource.DeviceConfiguration
resource.ResourceClaimSpec
  devices resource.DeviceClaim
resource.DeviceResult
  request! string, driver! string, pool! string, device! string, adminAccess *bool
  tolerations []resource.DeviceToleration, bindingConditions []string
  bindingFailureConditions []string, shareID *string, consumedCapacity v1.ResourceList
resource.DeviceAllocation
  results []resource.DeviceResult, config []resource.DeviceConfiguration
resource.Allocation
  devices resource.DeviceAllocation, nodeSelector *v1.NodeSelector, allocationTimestamp *Time
resource.Consumer
  apiGroup string, resource! string, name! string, uid! string
resource.ResourceClaimStatus
  allocation *resource.Allocation, reservedFor []resource.Consumer, devices []any
resource.ResourceClaim kind
  spec! resource.ResourceClaimSpec, status resource.ResourceClaimStatus
resource.ResourceClaimTemplateSpec
  metadata meta.ObjectMeta, spec! resource.ResourceClaimSpec
resource.ResourceClaimTemplate kind
  spec! resource.ResourceClaimTemplateSpec
resource.DeviceClassSpec
  selectors []resource.DeviceSelector, config []resource.DeviceConfiguration
  extendedResourceName *string
resource.DeviceClass kind
  spec! resource.DeviceClassSpec
resource.DeviceAttribute
  int *int64, bool *bool, string *string, version *string
resource.DeviceCapacity
  value! Quantity, requestPolicy any
resource.Counter
  value! Quantity
resource.CounterSet
  name! string, counters! {}resource.Counter
resource.CounterConsumption
  counterSet! string, counters! {}resource.Counter
resource.DeviceTaint
  key! string, value string, effect! string, timeAdded *Time
resource.BasicDevice
  attributes {}resource.DeviceAttribute, capacity {}resource.DeviceCapacity
  consumesCounters []resource.CounterConsumption, nodeName *string, nodeSelector *v1.NodeSelector
  allNodes *bool, taints []resource.DeviceTaint, bindsToNode *bool, bindingConditions []string
  bindingFailureConditions []string, allowMultipleAllocations *bool
resource.Device like resource.BasicDevice
  name! string, basic *resource.BasicDevice
resource.ResourcePool
  name! string, generation! int64, resourceSliceCount! int64
resource.ResourceSliceSpec
  driver! string, pool! resource.ResourcePool, nodeName *string, nodeSelector *v1.NodeSelector
  allNodes *bool, devices []resource.Device, perDeviceNodeSelection *bool
  sharedCounters []resource.CounterSet
resource.ResourceSlice kind
  spec! resource.ResourceSliceSpec
networking.IPBlock
  cidr! string, except []string
networking.NetworkPolicyPeer
  podSelector *meta.LabelSelector, namespaceSelector *meta.LabelSelector
  ipBlock *networking.IPBlock
networking.NetworkPolicyPort
  protocol *string, port *IntOrString, endPort *int32
networking.NetworkPolicyRule
  ports []networking.NetworkPolicyPort, from []networking.NetworkPolicyPeer
  to []networking.NetworkPolicyPeer
networking.NetworkPolicySpec
  podSelector meta.LabelSelector, ingress []networking.NetworkPolicyRule
  egress []networking.NetworkPolicyRule, policyTypes []string
networking.NetworkPolicy kind
  spec networking.NetworkPolicySpec
apiextensions.Names
  plural! string, singular string, shortNames []string, kind! string, listKind string
  categories []string
apiextensions.Column
  name! string, type! string, format string, description string, priority int32, jsonPath! string
apiextensions.Version
  name! string, served! bool, storage! bool, deprecated bool, deprecationWarning *string
  schema any, subresources any, additionalPrinterColumns []apiextensions.Column
apiextensions.Spec
  group! string, names! apiextensions.Names, scope! string, versions! []apiextensions.Version
  conversion any, preserveUnknownFields bool
apiextensions.CustomResourceDefinition kind
  spec apiextensions.Spec, status any
meta.Preconditions
  uid *string, resourceVersion *string
meta.DeleteOptions kind
  gracePeriodSeconds *int64, preconditions *meta.Preconditions, orphanDependents *bool
  propagationPolicy *string, dryRun []string
v1.Binding kind
  target v1.ObjectReference
policy.Eviction kind
  deleteOptions *meta.DeleteOptions
autoscaling.ScaleSpec
  replicas int32
autoscaling.Scale kind
  spec autoscaling.ScaleSpec
meta.AnyObject kind
  spec any, status any
"""

_PACKAGES: Final = {
    "": "v1",
    "policy": "policy",
    "apps": "apps",
    "batch": "batchv1",
    "scheduling.k8s.io": "priority",
    "storage.k8s.io": "storage",
    "coordination.k8s.io": "coordination",
    "resource.k8s.io": "resource",
    "networking.k8s.io": "networking",
    "apiextensions.k8s.io": "apiextensions",
}


@cache
def notation_of(group: str, kind: str) -> str:
    """Return the notation of the struct of a kind; an undeclared one has metadata only."""
    if group.endswith(".volcano.sh"):
        return f"{group.partition('.')[0]}.{kind}"
    notation = f"{_PACKAGES[group]}.{kind}" if group in _PACKAGES else ""
    return notation if f"\n{notation} kind" in BUILT_INS or notation == "v1.Pod" else _ANY


_ANY: Final = "meta.AnyObject"
