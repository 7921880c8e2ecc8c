#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer run --tier` in a guest with two NUMA nodes, of which the second has no
# processors: ordinary memory that the firmware calls slow (hmat), or memory of an
# emulated CXL device, which really is (cxl). What the guest does is in
# vm/tier_guest.sh. Arguments: run_tier, hlog_client, hmat or cxl, scenarios.
# shellcheck source=tests/e2e/vm/vm_lib.sh
source "$(dirname "$0")/vm/vm_lib.sh"
# meson gives paths relative to the build folder, which is not the guest's.
PROGRAM=$(realpath "$1") HLOG=$(realpath "$2") KIND=$3
shift 3
# An emulated processor beside other work takes long, and long is no failure.
export VM_LIMIT=3500 VM_JOB_LIMIT=3000

# shellcheck disable=SC2054 # commas are QEMU's
case $KIND in
hmat)
	VM_MACHINE=q35,hmat=on VM_MEMORY=768
	VM_DEVICES=(-object memory-backend-ram,id=m0,size=512M
		-object memory-backend-ram,id=m1,size=256M
		-numa node,nodeid=0,memdev=m0,cpus=0-1,initiator=0
		-numa node,nodeid=1,memdev=m1,initiator=0
		-numa dist,src=0,dst=1,val=40)
	for row in 0:latency:90 1:latency:300 0:bandwidth:100G \
		1:bandwidth:20G; do
		IFS=: read -r node what value <<<"$row"
		VM_DEVICES+=(-numa "hmat-lb,initiator=0,target=$node,\
hierarchy=memory,data-type=access-$what,$what=$value")
	done
	;;
cxl)
	need cxl ndctl daxctl
	# The second root port is empty. With one alone, QEMU 7.2 and Linux
	# disagree about who decodes, and every read gives wrong bytes.
	VM_MACHINE=q35,cxl=on,cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=4G
	VM_MEMORY=768,slots=4,maxmem=8G
	VM_DEVICES=(-object memory-backend-ram,id=cxl-mem1,share=on,size=256M
		-object memory-backend-ram,id=cxl-lsa1,share=on,size=1M
		-device pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.1
		-device cxl-rp,port=0,bus=cxl.1,id=rp0,chassis=0,slot=2
		-device cxl-rp,port=1,bus=cxl.1,id=rp1,chassis=0,slot=3
		-device cxl-type3,bus=rp0,memdev=cxl-mem1,lsa=cxl-lsa1,id=cxl-pmem0)
	;;
*) fail "hmat or cxl, not '$KIND'" ;;
esac

vm_boot 1500
cp -r "$(vm_cache)/extra" "$VM_SHARE"
for scenario; do
	echo "$scenario:"
	guest "EXTRA=/run/share/extra MOVES=${VM_MOVES:-100000} HLOG='$HLOG'" \
		"bash '$VM_DIR/tier_guest.sh' '$AQUIFER' '$PROGRAM' $scenario" ||
		vm_fail "$scenario failed"
done
