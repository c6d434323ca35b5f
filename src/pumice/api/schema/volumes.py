"""Kubernetes' volumes and claims; read by schema.grammar."""

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
