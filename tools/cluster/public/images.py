"""For other tools: build, save, load and write container images."""

from cluster.images.archive import layer, pack_files, write_archive
from cluster.images.build import Build, build_image, build_with, load, save_image
from cluster.images.recipes import ARCHITECTURE, BASE, BUILD, LOCAL, PATH, Image
from cluster.images.rootfs import rootfs_file
from cluster.images.store import cluster_archive, remove_images
from cluster.images.tools import Tool, opened, tool_with

__all__ = [
    "ARCHITECTURE",
    "BASE",
    "BUILD",
    "LOCAL",
    "PATH",
    "Build",
    "Image",
    "Tool",
    "build_image",
    "build_with",
    "cluster_archive",
    "layer",
    "load",
    "opened",
    "pack_files",
    "remove_images",
    "rootfs_file",
    "save_image",
    "tool_with",
    "write_archive",
]
