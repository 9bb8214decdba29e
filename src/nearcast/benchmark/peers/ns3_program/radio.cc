// One radio scenario in ns-3: read from standard input, answered on standard output as one JSON document.
//
// Everything that costs time runs in C++, without sockets, IP or traces: applications hand their bytes straight to the
// device (which adds LLC/SNAP) and are called back by it.  Only Simulator::Run is timed.  `peers/ns3.py` writes the input.

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr int BROADCAST = -1;
constexpr std::size_t FRAMES_WAITING = 8; // of a saturated source: enough that its queue never runs empty
constexpr uint16_t PROTOCOL = 0x88b5;     // for local experiments

struct Sending
{
    int64_t time; // ns
    int receiver; // or BROADCAST
};

struct Source
{
    std::vector<Sending> sendings;
    std::size_t next = 0;
    int saturatedTo = BROADCAST;
};

struct Scenario
{
    std::map<std::string, double> numbers;
    std::map<std::string, std::string> words;
    std::vector<Vector> places;
    std::vector<Source> sources;

    double Number(const std::string& name) const
    {
        auto found = numbers.find(name);
        if (found == numbers.end())
        {
            throw std::runtime_error("the scenario does not say " + name);
        }
        return found->second;
    }
};

Scenario
Read(std::istream& input)
{
    Scenario scenario;
    std::string name;
    while (input >> name && name != "end")
    {
        if (name == "places")
        {
            std::size_t count;
            input >> count;
            scenario.places.resize(count);
            scenario.sources.resize(count);
            for (auto& place : scenario.places)
            {
                input >> place.x >> place.y;
            }
        }
        else if (name == "sendings") // in the order of time
        {
            std::size_t count;
            std::size_t sender;
            Sending sending{};
            input >> count;
            for (std::size_t i = 0; i < count; ++i)
            {
                input >> sending.time >> sender >> sending.receiver;
                scenario.sources.at(sender).sendings.push_back(sending);
            }
        }
        else if (name == "saturated")
        {
            std::size_t count;
            std::size_t sender;
            input >> count;
            for (std::size_t i = 0; i < count; ++i)
            {
                input >> sender;
                input >> scenario.sources.at(sender).saturatedTo;
            }
        }
        else if (name == "data_mode" || name == "basic_mode" || name == "broadcast_mode" ||
                 name == "error_model")
        {
            input >> scenario.words[name];
        }
        else
        {
            input >> scenario.numbers[name];
        }
    }
    if (!input)
    {
        throw std::runtime_error("the scenario ended early, after " + name);
    }
    return scenario;
}

class Crowd
{
  public:
    Crowd(Scenario& scenario, NetDeviceContainer devices)
        : m_sources(scenario.sources),
          m_devices(devices),
          m_bytes(static_cast<uint32_t>(scenario.Number("network_bytes")))
    {
        for (std::size_t node = 0; node < m_sources.size(); ++node)
        {
            auto device = DynamicCast<WifiNetDevice>(m_devices.Get(node));
            m_addresses.push_back(Mac48Address::ConvertFrom(device->GetAddress()));
            m_numbers[m_addresses.back()] = node;
            m_received.emplace_back(m_sources.size(), 0);
            device->SetReceiveCallback(MakeCallback(&Crowd::Receive, this));
            auto& source = m_sources[node];
            if (!source.sendings.empty())
            {
                Simulator::ScheduleWithContext(node, NanoSeconds(source.sendings[0].time), &Crowd::SendNext, this, node);
            }
            if (source.saturatedTo != BROADCAST)
            {
                device->GetMac()->TraceConnectWithoutContext("AckedMpdu", MakeCallback(&Crowd::Acknowledged, this));
                device->GetMac()->TraceConnectWithoutContext("DroppedMpdu", MakeCallback(&Crowd::Dropped, this));
                for (std::size_t i = 0; i < FRAMES_WAITING; ++i)
                {
                    Simulator::ScheduleWithContext(node, Time(0), &Crowd::Send, this, node, source.saturatedTo);
                }
            }
        }
    }

    void Print(std::ostream& output) const
    {
        output << "\"sent\": " << m_sent << ", \"acknowledged\": " << m_acknowledged << ", \"dropped\": " << m_dropped
               << ", \"received\": [";
        const char* comma = "";
        for (std::size_t receiver = 0; receiver < m_received.size(); ++receiver)
        {
            for (std::size_t sender = 0; sender < m_received.size(); ++sender)
            {
                if (m_received[receiver][sender])
                {
                    output << comma << "[" << sender << "," << receiver << "," << m_received[receiver][sender] << "]";
                    comma = ",";
                }
            }
        }
        output << "]";
    }

  private:
    void Send(std::size_t sender, int receiver)
    {
        auto to = receiver == BROADCAST ? Mac48Address::GetBroadcast() : m_addresses[receiver];
        m_devices.Get(sender)->Send(Create<Packet>(m_bytes), to, PROTOCOL);
        ++m_sent;
    }

    // Each source keeps one event in the scheduler, not one for each frame to come: kinder to the event queue.
    void SendNext(std::size_t sender)
    {
        auto& source = m_sources[sender];
        Send(sender, source.sendings[source.next].receiver);
        if (++source.next < source.sendings.size())
        {
            Simulator::Schedule(NanoSeconds(source.sendings[source.next].time) - Simulator::Now(),
                                &Crowd::SendNext,
                                this,
                                sender);
        }
    }

    void SendAnother(Mac48Address sender)
    {
        auto node = m_numbers.at(sender);
        // Not from within the trace: the frame that is done is still at the head of the queue.
        Simulator::ScheduleNow(&Crowd::Send, this, node, m_sources[node].saturatedTo);
    }

    void Acknowledged(Ptr<const WifiMpdu> mpdu)
    {
        ++m_acknowledged;
        SendAnother(mpdu->GetHeader().GetAddr2());
    }

    void Dropped(WifiMacDropReason, Ptr<const WifiMpdu> mpdu)
    {
        ++m_dropped;
        SendAnother(mpdu->GetHeader().GetAddr2());
    }

    bool Receive(Ptr<NetDevice> device, Ptr<const Packet>, uint16_t, const Address& from)
    {
        uint8_t bytes[6];
        Mac48Address::ConvertFrom(from).CopyTo(bytes); // handed out one after the other, from 1 on
        std::size_t sender = (bytes[3] << 16 | bytes[4] << 8 | bytes[5]) - 1;
        ++m_received[device->GetNode()->GetId()][sender];
        return true;
    }

    std::vector<Source>& m_sources;
    NetDeviceContainer m_devices;
    uint32_t m_bytes;
    std::vector<Mac48Address> m_addresses;
    std::map<Mac48Address, std::size_t> m_numbers;
    std::vector<std::vector<uint32_t>> m_received;
    uint64_t m_sent = 0;
    uint64_t m_acknowledged = 0;
    uint64_t m_dropped = 0;
};

NetDeviceContainer
Build(const Scenario& scenario)
{
    bool dsss = scenario.Number("dsss") != 0;
    auto limit = UintegerValue(static_cast<uint64_t>(scenario.Number("retry_limit")));
    if (TypeId::AttributeInformation attribute;
        WifiMac::GetTypeId().LookupAttributeByName("FrameRetryLimit", &attribute))
    {
        Config::SetDefault("ns3::WifiMac::FrameRetryLimit", limit); // newer versions; the others are obsolete there
    }
    else
    {
        Config::SetDefault("ns3::WifiRemoteStationManager::MaxSsrc", limit);
        Config::SetDefault("ns3::WifiRemoteStationManager::MaxSlrc", limit);
    }
    auto frames = static_cast<uint32_t>(scenario.Number("queue_frames"));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, frames)));
    auto lifetime = NanoSeconds(static_cast<int64_t>(scenario.Number("lifetime_ns")));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(lifetime));

    NodeContainer nodes(scenario.places.size());
    auto positions = CreateObject<ListPositionAllocator>();
    for (const auto& place : scenario.places)
    {
        positions->Add(place);
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(positions);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);

    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel",
                               "Exponent",
                               DoubleValue(scenario.Number("path_loss_exponent")),
                               "ReferenceLoss",
                               DoubleValue(scenario.Number("reference_loss_db")));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.SetErrorRateModel(scenario.words.at("error_model"));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel",
                                  "MinimumRssi",
                                  DoubleValue(scenario.Number("reception_threshold_dbm")),
                                  "Threshold",
                                  DoubleValue(scenario.Number("preamble_sinr_db")));
    phy.Set("TxPowerStart", DoubleValue(scenario.Number("tx_power_dbm")));
    phy.Set("TxPowerEnd", DoubleValue(scenario.Number("tx_power_dbm")));
    phy.Set("RxNoiseFigure", DoubleValue(scenario.Number("noise_figure_db")));
    // Sensitivity is per 20 MHz; DSSS occupies 22.
    double width = dsss ? 10 * std::log10(22.0 / 20.0) : 0;
    phy.Set("RxSensitivity", DoubleValue(scenario.Number("interference_threshold_dbm") - width));
    phy.Set("CcaEdThreshold", DoubleValue(scenario.Number("carrier_sense_threshold_dbm")));
    phy.Set("CcaSensitivity", DoubleValue(scenario.Number("carrier_sense_threshold_dbm")));

    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(false));
    WifiHelper wifi;
    wifi.SetStandard(dsss ? WIFI_STANDARD_80211b : WIFI_STANDARD_80211g);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue(scenario.words.at("data_mode")),
                                 "ControlMode",
                                 StringValue(scenario.words.at("basic_mode")),
                                 "NonUnicastMode",
                                 StringValue(scenario.words.at("broadcast_mode")),
                                 "RtsCtsThreshold",
                                 UintegerValue(static_cast<uint64_t>(scenario.Number("rts_threshold"))));
    auto devices = wifi.Install(phy, mac, nodes);
    for (uint32_t i = 0; i < devices.GetN(); ++i)
    {
        auto device = DynamicCast<WifiNetDevice>(devices.Get(i));
        device->GetPhy()->SetSlot(NanoSeconds(static_cast<uint64_t>(scenario.Number("slot_ns"))));
    }
    return devices;
}

} // namespace

int
main()
{
    try
    {
        auto scenario = Read(std::cin);
        RngSeedManager::SetSeed(static_cast<uint32_t>(scenario.Number("seed")) + 1);
        Crowd crowd(scenario, Build(scenario));
        Simulator::Stop(NanoSeconds(static_cast<int64_t>(scenario.Number("duration_ns"))));
        auto started = std::chrono::steady_clock::now();
        Simulator::Run();
        std::chrono::duration<double> spent = std::chrono::steady_clock::now() - started;
        std::cout << "{\"seconds\": " << spent.count() << ", \"events\": " << Simulator::GetEventCount() << ", ";
        crowd.Print(std::cout);
        std::cout << "}" << std::endl;
        Simulator::Destroy();
        return 0;
    }
    catch (const std::exception& error)
    {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}
