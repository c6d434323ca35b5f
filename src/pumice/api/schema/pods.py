"""Kubernetes' pods; read by schema.grammar."""

from typing import Final

VOLUMES: Final = r"""
v1.VolumeResourceRequirements
  limits v1.ResourceList, requests v1.ResourceList
v1.TypedLocalObjectReference
  apiGroup! *string optional, kind! string, name! string
v1.TypedObjectReference
  apiGroup! *string optional, kind! string, name! string, namespace *string
v1.PersistentVolumeClaimSpec
  accessModes []v1.PersistentVolumeAccessMode, selector *meta.LabelSelector
  resources v1.VolumeResourceRequirements, volumeName string, storageClassName *string
  volumeMode *v1.PersistentVolumeMode, dataSource *v1.TypedLocalObjectReference
  dataSourceRef *v1.TypedObjectReference, volumeAttributesClassName *string
v1.HostPathVolumeSource
  path! string, type *v1.HostPathType
v1.EmptyDirVolumeSource
  medium v1.StorageMedium, sizeLimit *Quantity
v1.GCEPersistentDiskVolumeSource
  pdName! string, fsType string, partition int32, readOnly bool
v1.AWSElasticBlockStoreVolumeSource
  volumeID! string, fsType string, partition int32, readOnly bool
v1.GitRepoVolumeSource
  repository! string, revision string, directory string
v1.KeyToPath
  key! string, path! string, mode *int32
v1.SecretVolumeSource
  secretName string, items []v1.KeyToPath, defaultMode *int32, optional *bool
v1.NFSVolumeSource
  server! string, path! string, readOnly bool
v1.ISCSIVolumeSource
  targetPortal! string, iqn! string, lun! int32, iscsiInterface string default=default
  fsType string, readOnly bool, portals []string, chapAuthDiscovery bool, chapAuthSession bool
  secretRef *v1.LocalObjectReference, initiatorName *string
v1.GlusterfsVolumeSource
  endpoints! string, path! string, readOnly bool
v1.PersistentVolumeClaimVolumeSource
  claimName! string, readOnly bool
v1.RBDVolumeSource
  monitors! []string, image! string, fsType string, pool string default=rbd
  user string default=admin, keyring string default=/etc/ceph/keyring
  secretRef *v1.LocalObjectReference, readOnly bool
v1.FlexVolumeSource
  driver! string, fsType string, secretRef *v1.LocalObjectReference, readOnly bool
  options {}string
v1.CinderVolumeSource
  volumeID! string, fsType string, readOnly bool, secretRef *v1.LocalObjectReference
v1.CephFSVolumeSource
  monitors! []string, path string, user string, secretFile string
  secretRef *v1.LocalObjectReference, readOnly bool
v1.FlockerVolumeSource
  datasetName string, datasetUUID string
v1.DownwardAPIVolumeFile
  path! string, fieldRef *v1.ObjectFieldSelector, resourceFieldRef *v1.ResourceFieldSelector
  mode *int32
v1.DownwardAPIVolumeSource
  items []v1.DownwardAPIVolumeFile, defaultMode *int32
v1.FCVolumeSource
  targetWWNs []string, lun *int32, fsType string, readOnly bool, wwids []string
v1.AzureFileVolumeSource
  secretName! string, shareName! string, readOnly bool
v1.ConfigMapVolumeSource
  name string default=, items []v1.KeyToPath, defaultMode *int32, optional *bool
v1.VsphereVirtualDiskVolumeSource
  volumePath! string, fsType string, storagePolicyName string, storagePolicyID string
v1.QuobyteVolumeSource
  registry! string, volume! string, readOnly bool, user string, group string, tenant string
v1.AzureDiskVolumeSource
  diskName! string, diskURI! string, cachingMode *v1.AzureDataDiskCachingMode
  fsType *string default=ext4, readOnly *bool default=false, kind *v1.AzureDataDiskKind
v1.PhotonPersistentDiskVolumeSource
  pdID! string, fsType string
v1.SecretProjection
  name string default=, items []v1.KeyToPath, optional *bool
v1.DownwardAPIProjection
  items []v1.DownwardAPIVolumeFile
v1.ConfigMapProjection
  name string default=, items []v1.KeyToPath, optional *bool
v1.ServiceAccountTokenProjection
  audience string, expirationSeconds *int64, path! string
v1.ClusterTrustBundleProjection
  name *string, signerName *string, labelSelector *meta.LabelSelector, optional *bool, path! string
v1.PodCertificateProjection
  signerName string required, keyType string required, maxExpirationSeconds *int32
  credentialBundlePath string, keyPath string, certificateChainPath string
  userAnnotations {}string
v1.VolumeProjection
  secret *v1.SecretProjection, downwardAPI *v1.DownwardAPIProjection
  configMap *v1.ConfigMapProjection, serviceAccountToken *v1.ServiceAccountTokenProjection
  clusterTrustBundle *v1.ClusterTrustBundleProjection, podCertificate *v1.PodCertificateProjection
v1.ProjectedVolumeSource
  sources! []v1.VolumeProjection optional, defaultMode *int32
v1.PortworxVolumeSource
  volumeID! string, fsType string, readOnly bool
v1.ScaleIOVolumeSource
  gateway! string, system! string, secretRef! *v1.LocalObjectReference, sslEnabled bool
  protectionDomain string, storagePool string, storageMode string default=ThinProvisioned
  volumeName string, fsType string default=xfs, readOnly bool
v1.StorageOSVolumeSource
  volumeName string, volumeNamespace string, fsType string, readOnly bool
  secretRef *v1.LocalObjectReference
v1.CSIVolumeSource
  driver! string, readOnly *bool, fsType *string, volumeAttributes {}string
  nodePublishSecretRef *v1.LocalObjectReference
v1.PersistentVolumeClaimTemplate
  metadata meta.ObjectMeta, spec! v1.PersistentVolumeClaimSpec
v1.EphemeralVolumeSource
  volumeClaimTemplate *v1.PersistentVolumeClaimTemplate
v1.ImageVolumeSource
  reference string, pullPolicy v1.PullPolicy
v1.Volume
  name! string, hostPath *v1.HostPathVolumeSource, emptyDir *v1.EmptyDirVolumeSource
  gcePersistentDisk *v1.GCEPersistentDiskVolumeSource
  awsElasticBlockStore *v1.AWSElasticBlockStoreVolumeSource, gitRepo *v1.GitRepoVolumeSource
  secret *v1.SecretVolumeSource, nfs *v1.NFSVolumeSource, iscsi *v1.ISCSIVolumeSource
  glusterfs *v1.GlusterfsVolumeSource, persistentVolumeClaim *v1.PersistentVolumeClaimVolumeSource
  rbd *v1.RBDVolumeSource, flexVolume *v1.FlexVolumeSource, cinder *v1.CinderVolumeSource
  cephfs *v1.CephFSVolumeSource, flocker *v1.FlockerVolumeSource
  downwardAPI *v1.DownwardAPIVolumeSource, fc *v1.FCVolumeSource
  azureFile *v1.AzureFileVolumeSource, configMap *v1.ConfigMapVolumeSource
  vsphereVolume *v1.VsphereVirtualDiskVolumeSource, quobyte *v1.QuobyteVolumeSource
  azureDisk *v1.AzureDiskVolumeSource, photonPersistentDisk *v1.PhotonPersistentDiskVolumeSource
  projected *v1.ProjectedVolumeSource, portworxVolume *v1.PortworxVolumeSource
  scaleIO *v1.ScaleIOVolumeSource, storageos *v1.StorageOSVolumeSource, csi *v1.CSIVolumeSource
  ephemeral *v1.EphemeralVolumeSource, image *v1.ImageVolumeSource
"""


PODS: Final = r"""
meta.OwnerReference atomic
  apiVersion! string, kind! string, name! string, uid! types.UID, controller *bool
  blockOwnerDeletion *bool
meta.ObjectMeta
  name string, generateName string, namespace string, selfLink string, uid types.UID
  resourceVersion string, generation int64, creationTimestamp- Time, deletionTimestamp *Time
  deletionGracePeriodSeconds *int64, labels {}string, annotations {}string
  ownerReferences []meta.OwnerReference, finalizers []string, managedFields any
meta.LabelSelectorRequirement
  key! string, operator! meta.LabelSelectorOperator, values []string atomic
meta.LabelSelector atomic
  matchLabels {}string, matchExpressions []meta.LabelSelectorRequirement atomic
v1.LocalObjectReference
  name string default=
v1.ObjectFieldSelector
  apiVersion string, fieldPath! string
v1.ResourceFieldSelector
  containerName string, resource! string, divisor Quantity
v1.ContainerPort
  name string, hostPort int32, containerPort! int32, protocol v1.Protocol default=TCP
  hostIP string
v1.ConfigMapEnvSource
  name string default=, optional *bool
v1.SecretEnvSource
  name string default=, optional *bool
v1.EnvFromSource
  prefix string, configMapRef *v1.ConfigMapEnvSource, secretRef *v1.SecretEnvSource
v1.ConfigMapKeySelector
  name string default=, key! string, optional *bool
v1.SecretKeySelector
  name string default=, key! string, optional *bool
v1.FileKeySelector
  volumeName! string, path! string, key! string, optional *bool default=false
v1.EnvVarSource
  fieldRef *v1.ObjectFieldSelector, resourceFieldRef *v1.ResourceFieldSelector
  configMapKeyRef *v1.ConfigMapKeySelector, secretKeyRef *v1.SecretKeySelector
  fileKeyRef *v1.FileKeySelector
v1.EnvVar
  name! string, value string, valueFrom *v1.EnvVarSource
v1.ResourceClaim
  name! string, request string
v1.ResourceRequirements
  limits v1.ResourceList, requests v1.ResourceList, claims []v1.ResourceClaim keys=name
v1.ContainerResizePolicy
  resourceName! v1.ResourceName, restartPolicy! v1.ResourceResizeRestartPolicy
v1.ContainerRestartRuleOnExitCodes
  operator v1.ContainerRestartRuleOnExitCodesOperator required, values []int32 unique
v1.ContainerRestartRule
  action v1.ContainerRestartRuleAction required, exitCodes *v1.ContainerRestartRuleOnExitCodes
v1.VolumeMount
  name! string, readOnly bool, recursiveReadOnly *v1.RecursiveReadOnlyMode, mountPath! string
  subPath string, mountPropagation *v1.MountPropagationMode, subPathExpr string
v1.VolumeDevice
  name! string, devicePath! string
v1.ExecAction
  command []string
v1.HTTPHeader
  name! string, value! string
v1.HTTPGetAction
  path string, port! IntOrString, host string, scheme v1.URIScheme, httpHeaders []v1.HTTPHeader
v1.TCPSocketAction
  port! IntOrString, host string
v1.GRPCAction
  port! int32, service! *string default=
v1.Probe
  exec *v1.ExecAction, httpGet *v1.HTTPGetAction, tcpSocket *v1.TCPSocketAction
  grpc *v1.GRPCAction, initialDelaySeconds int32, timeoutSeconds int32, periodSeconds int32
  successThreshold int32, failureThreshold int32, terminationGracePeriodSeconds *int64
v1.SleepAction
  seconds! int64
v1.LifecycleHandler
  exec *v1.ExecAction, httpGet *v1.HTTPGetAction, tcpSocket *v1.TCPSocketAction
  sleep *v1.SleepAction
v1.Lifecycle
  postStart *v1.LifecycleHandler, preStop *v1.LifecycleHandler, stopSignal *v1.Signal
v1.Capabilities
  add []v1.Capability, drop []v1.Capability
v1.SELinuxOptions
  user string, role string, type string, level string
v1.WindowsSecurityContextOptions
  gmsaCredentialSpecName *string, gmsaCredentialSpec *string, runAsUserName *string
  hostProcess *bool
v1.SeccompProfile
  type! v1.SeccompProfileType, localhostProfile *string
v1.AppArmorProfile
  type! v1.AppArmorProfileType, localhostProfile *string
v1.SecurityContext
  capabilities *v1.Capabilities, privileged *bool, seLinuxOptions *v1.SELinuxOptions
  windowsOptions *v1.WindowsSecurityContextOptions, runAsUser *int64, runAsGroup *int64
  runAsNonRoot *bool, readOnlyRootFilesystem *bool, allowPrivilegeEscalation *bool
  procMount *v1.ProcMountType, seccompProfile *v1.SeccompProfile
  appArmorProfile *v1.AppArmorProfile
v1.Container
  name! string, image string, command []string, args []string, workingDir string
  ports []v1.ContainerPort keys=containerPort|protocol, envFrom []v1.EnvFromSource
  env []v1.EnvVar keys=name, resources v1.ResourceRequirements
  resizePolicy []v1.ContainerResizePolicy, restartPolicy *v1.ContainerRestartPolicy
  restartPolicyRules []v1.ContainerRestartRule, volumeMounts []v1.VolumeMount keys=mountPath
  volumeDevices []v1.VolumeDevice keys=devicePath, livenessProbe *v1.Probe
  readinessProbe *v1.Probe, startupProbe *v1.Probe, lifecycle *v1.Lifecycle
  terminationMessagePath string, terminationMessagePolicy v1.TerminationMessagePolicy
  imagePullPolicy v1.PullPolicy, securityContext *v1.SecurityContext, stdin bool, stdinOnce bool
  tty bool
v1.EphemeralContainer like v1.Container
  targetContainerName string
v1.Sysctl
  name! string, value! string
v1.PodSecurityContext
  seLinuxOptions *v1.SELinuxOptions, windowsOptions *v1.WindowsSecurityContextOptions
  runAsUser *int64, runAsGroup *int64, runAsNonRoot *bool, supplementalGroups []int64
  supplementalGroupsPolicy *v1.SupplementalGroupsPolicy, fsGroup *int64, sysctls []v1.Sysctl
  fsGroupChangePolicy *v1.PodFSGroupChangePolicy, seccompProfile *v1.SeccompProfile
  appArmorProfile *v1.AppArmorProfile, seLinuxChangePolicy *v1.PodSELinuxChangePolicy
v1.NodeSelectorRequirement
  key! string, operator! v1.NodeSelectorOperator, values []string
v1.NodeSelectorTerm
  matchExpressions []v1.NodeSelectorRequirement, matchFields []v1.NodeSelectorRequirement
v1.NodeSelector
  nodeSelectorTerms! []v1.NodeSelectorTerm
v1.PreferredSchedulingTerm
  weight! int32, preference! v1.NodeSelectorTerm
v1.NodeAffinity
  requiredDuringSchedulingIgnoredDuringExecution *v1.NodeSelector
  preferredDuringSchedulingIgnoredDuringExecution []v1.PreferredSchedulingTerm
v1.PodAffinityTerm
  labelSelector *meta.LabelSelector, namespaces []string, topologyKey! string
  namespaceSelector *meta.LabelSelector, matchLabelKeys []string, mismatchLabelKeys []string
v1.WeightedPodAffinityTerm
  weight! int32, podAffinityTerm! v1.PodAffinityTerm
v1.PodAffinity
  requiredDuringSchedulingIgnoredDuringExecution []v1.PodAffinityTerm
  preferredDuringSchedulingIgnoredDuringExecution []v1.WeightedPodAffinityTerm
v1.PodAntiAffinity like v1.PodAffinity
v1.Affinity
  nodeAffinity *v1.NodeAffinity, podAffinity *v1.PodAffinity, podAntiAffinity *v1.PodAntiAffinity
v1.Toleration
  key string, operator v1.TolerationOperator, value string, effect v1.TaintEffect
  tolerationSeconds *int64
v1.HostAlias
  ip! string, hostnames []string
v1.PodDNSConfigOption
  name string, value *string
v1.PodDNSConfig
  nameservers []string, searches []string, options []v1.PodDNSConfigOption
v1.PodReadinessGate
  conditionType! v1.PodConditionType
v1.TopologySpreadConstraint
  maxSkew! int32, topologyKey! string, whenUnsatisfiable! v1.UnsatisfiableConstraintAction
  labelSelector *meta.LabelSelector, minDomains *int32, nodeAffinityPolicy *v1.NodeInclusionPolicy
  nodeTaintsPolicy *v1.NodeInclusionPolicy, matchLabelKeys []string
v1.PodOS
  name! v1.OSName
v1.PodSchedulingGate
  name! string
v1.PodResourceClaim
  name! string, resourceClaimName *string, resourceClaimTemplateName *string
v1.PodSchedulingGroup
  podGroupName *string
v1.PodSpec
  volumes []v1.Volume keys=name, initContainers []v1.Container keys=name
  containers! []v1.Container keys=name, ephemeralContainers []v1.EphemeralContainer keys=name
  restartPolicy v1.RestartPolicy, terminationGracePeriodSeconds *int64
  activeDeadlineSeconds *int64, dnsPolicy v1.DNSPolicy, nodeSelector {}string
  serviceAccountName string, serviceAccount string, automountServiceAccountToken *bool
  nodeName string, hostNetwork bool, hostPID bool, hostIPC bool, shareProcessNamespace *bool
  securityContext *v1.PodSecurityContext, imagePullSecrets []v1.LocalObjectReference keys=name
  hostname string, subdomain string, affinity *v1.Affinity, schedulerName string
  tolerations []v1.Toleration, hostAliases []v1.HostAlias keys=ip, priorityClassName string
  priority *int32, dnsConfig *v1.PodDNSConfig, readinessGates []v1.PodReadinessGate
  runtimeClassName *string, enableServiceLinks *bool, preemptionPolicy *v1.PreemptionPolicy
  overhead v1.ResourceList
  topologySpreadConstraints []v1.TopologySpreadConstraint keys=topologyKey|whenUnsatisfiable
  setHostnameAsFQDN *bool, os *v1.PodOS, hostUsers *bool
  schedulingGates []v1.PodSchedulingGate keys=name, resourceClaims []v1.PodResourceClaim keys=name
  resources *v1.ResourceRequirements, hostnameOverride *string
  schedulingGroup *v1.PodSchedulingGroup
v1.PodTemplateSpec
  metadata meta.ObjectMeta -- Labels and annotations of the pods.
  spec v1.PodSpec -- The pods' specification; all fields of Kubernetes' PodSpec.
v1.ObjectReference atomic
  kind string, namespace string, name string, uid types.UID, apiVersion string
  resourceVersion string, fieldPath string
meta.Condition
  type! string length<=316 pattern=CONDITION_TYPE
  status! meta.ConditionStatus enum=True|False|Unknown, observedGeneration int64 >=0
  lastTransitionTime! Time, reason! string length>=1 length<=1024 pattern=REASON
  message! string length<=32768
v1.Pod
  kind string, apiVersion string, metadata meta.ObjectMeta, spec v1.PodSpec, status any
"""
