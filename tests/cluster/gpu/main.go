// SPDX-License-Identifier: GPL-3.0-or-later

// Command gpu is a device plugin without devices: it tells the kubelet of GPUs that are only names,
// and of those that it hands out in the container's environment, STANDIN_GPUS. As with CDI nothing
// there that NVIDIA's programs know says which they are.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []*api.Device
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// All there are, once: they never change.
func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"STANDIN_GPUS": strings.Join(container.DevicesIds, ",")},
		})
	}
	return response, nil
}

func register(resource, socket string) error {
	kubelet, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(kubelet).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(socket), ResourceName: resource,
	}, grpc.WaitForReady(true))
	return err
}

func main() {
	resource := flag.String("resource", "nvidia.com/gpu", "what they are called")
	count := flag.Int("count", 8, "how many there are")
	flag.Parse()

	p := &plugin{}
	for i := range *count {
		id := fmt.Sprintf("GPU-%08x-5eed-4000-8000-%012x", 0xabcd0000+i, i)
		p.devices = append(p.devices, &api.Device{ID: id, Health: api.Healthy})
	}
	socket := filepath.Join(api.DevicePluginPath, "standin.sock")
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() {
		if err := register(*resource, socket); err != nil {
			log.Fatal(err)
		}
		log.Printf("%d of %s registered", *count, *resource)
	}()
	log.Fatal(server.Serve(listener))
}
